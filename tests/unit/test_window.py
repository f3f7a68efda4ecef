"""What a window promises an exchange."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.connectors.window import Window, usage

windows = st.builds(Window, st.just("requests"), st.integers(1, 50), st.integers(1, 100_000))
START = 1_700_000_000_000


@given(window=windows, gaps=st.lists(st.integers(0, 3_000), min_size=1, max_size=300))
def test_no_sliding_period_ever_holds_more_than_the_limit(window: Window, gaps: list[int]) -> None:
    """A greedy caller who asks at every one of these moments, against the plain definition."""
    state: dict[str, object] = {}
    granted: list[int] = []
    now = START
    for gap in gaps:
        now += gap
        if usage(window, state, "sliding_window", now).used < window.limit:
            granted.append(now)
            state = _with_grant(window, state, now)
    for position, moment in enumerate(granted):
        inside = [each for each in granted[: position + 1] if each > moment - window.period_ms]
        assert len(inside) <= window.limit


@given(window=windows)
def test_the_price_of_bins_and_margin_is_small_for_real_periods(window: Window) -> None:
    longest = (window.bins + 1) * window.bin_ms
    assert longest >= window.span_ms > window.period_ms
    if window.period_ms >= 5_000:
        assert longest <= window.period_ms * 1.05


def test_a_denied_caller_is_told_the_first_moment_that_helps() -> None:
    window = Window("requests", 2, 1_000)
    state: dict[str, object] = {}
    for moment in (START, START + 300):
        state = _with_grant(window, state, moment)
    used = usage(window, state, "sliding_window", START + 400)
    free_at = used.first(lambda used: used < window.limit, START + 400)
    assert usage(window, state, "sliding_window", free_at).used == 1
    assert usage(window, state, "sliding_window", free_at - 1).used == 2


def _with_grant(window: Window, state: dict[str, object], now: int) -> dict[str, object]:
    current = now - now % window.bin_ms
    bins = [*state.get("bins", [])]  # type: ignore[misc]
    if state.get("t") == current:
        return {**state, "cur": state["cur"] + 1}  # type: ignore[operator]
    if state:
        bins.append({"t": state["t"], "n": state["cur"]})
    return {"t": current, "cur": 1, "bins": bins}
