"""The simulated exchange's rate limit and bans."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.simulated.request_limit import Limit, RequestLimit
from collector.simulated.windows import sliding_violations


def test_over_the_limit_is_429_with_the_wait() -> None:
    gate = RequestLimit(Limit(requests=2, period_ms=10_000, enforce=True))
    assert [gate.admit(at, 1).status for at in (0.0, 1.0, 2.0)] == [200, 200, 429]
    assert gate.admit(4_500.0, 1).retry_after_s == 6
    assert gate.admit(10_001.5, 1).status == 429
    assert gate.admit(20_001.5, 1).status == 200


def test_without_enforcement_an_excess_is_only_noted() -> None:
    gate = RequestLimit(Limit(requests=1, period_ms=1000))
    verdicts = [gate.admit(float(at), 1) for at in range(3)]
    assert [verdict.status for verdict in verdicts] == [200, 200, 200]
    assert [verdict.violation for verdict in verdicts] == [False, True, True]


def test_weight_has_a_limit_of_its_own() -> None:
    gate = RequestLimit(Limit(weight=50, period_ms=1000, enforce=True))
    assert [gate.admit(float(at), 20).status for at in range(3)] == [200, 200, 429]
    assert gate.admit(1001.5, 10).status == 200


def test_those_who_go_on_are_banned_and_every_request_starts_the_ban_anew() -> None:
    gate = RequestLimit(
        Limit(requests=1, period_ms=1000, enforce=True, ban_after=2, ban_seconds=60)
    )
    assert [gate.admit(float(at), 1).status for at in range(3)] == [200, 429, 418]
    during = gate.admit(59_000.0, 1)
    assert (during.status, during.violation, during.retry_after_s) == (418, True, 60)
    assert gate.admit(118_999.0, 1).status == 418
    assert gate.admit(178_999.0, 1).status == 200


@given(
    steps=st.lists(st.integers(0, 40), max_size=60),
    limit=st.integers(1, 5),
    period=st.integers(1, 100),
)
def test_the_gate_and_the_judge_agree(steps: list[int], limit: int, period: int) -> None:
    gate = RequestLimit(Limit(requests=limit, period_ms=period))
    times: list[float] = []
    flagged = 0
    for step in steps:
        times.append((times[-1] if times else 0.0) + step)
        flagged += gate.admit(times[-1], 1).violation
    assert flagged == sliding_violations(times, limit, period)
