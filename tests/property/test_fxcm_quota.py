"""FXCM's history budget against plain counting: never too many, never a wait that is wrong."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from collector.clock import ManualClock
from collector.exchanges.fxcm.quota_settings import HistoryTarget, LoadThresholds, QuotaSettings
from tests.support.fxcm.history_quota import HistoryQuota

PAIRS = [
    HistoryTarget(symbol, tf) for symbol in ("XAUUSD", "GBPUSD", "USDJPY") for tf in ("1m", "5m")
]
SHARE = st.floats(-0.5, 1.5)


@st.composite
def settings(draw: st.DrawFn) -> QuotaSettings:
    per_min, per_hour = draw(st.integers(1, 8)), draw(st.integers(1, 20))
    return replace(
        QuotaSettings(),
        max_calls_per_min=per_min,
        max_calls_per_hour=per_hour,
        priority_reserve_per_min=draw(st.integers(0, per_min - 1)),
        priority_reserve_per_hour=draw(st.integers(0, per_hour - 1)),
        priority_targets=frozenset(draw(st.sets(st.sampled_from(PAIRS)))),
        thresholds=LoadThresholds(draw(SHARE), draw(SHARE), draw(SHARE), draw(SHARE)),
    )


STEPS = st.lists(
    st.tuples(st.sampled_from([0, 1, 500, 2500, 7000, 30_000, 59_999, 60_000, 900_000]),
              st.sampled_from(PAIRS)),
    max_size=60,
)  # fmt: skip


@given(settings(), STEPS)
def test_no_sliding_window_ever_holds_more_than_its_limit(
    settings: QuotaSettings, steps: list[tuple[int, HistoryTarget]]
) -> None:
    clock, made, at_ms = ManualClock(), [], 0
    quota = HistoryQuota(settings, clock)
    for wait_ms, pair in steps:
        at_ms += wait_ms
        clock.advance(wait_ms / 1000)
        if quota.allow_call(*pair).allowed:
            made.append(at_ms)
    for period_ms, limit in (
        (60_000, settings.max_calls_per_min),
        (3_600_000, settings.max_calls_per_hour),
    ):
        for first in made:
            assert sum(first <= each < first + period_ms for each in made) <= limit


@given(settings(), STEPS, st.sampled_from(PAIRS))
def test_a_wait_ends_exactly_when_the_call_is_allowed(
    settings: QuotaSettings, steps: list[tuple[int, HistoryTarget]], pair: HistoryTarget
) -> None:
    for early_ms in (0, 1):
        clock = ManualClock()
        quota = HistoryQuota(settings, clock)
        for wait_ms, each in steps:
            clock.advance(wait_ms / 1000)
            quota.allow_call(*each)
        decision = quota.allow_call(*pair)
        if decision.allowed:
            return
        clock.advance(decision.wait_seconds - early_ms / 1000)
        assert quota.allow_call(*pair).allowed is (early_ms == 0)


@given(settings(), STEPS)
def test_a_priority_pair_is_refused_by_the_quotas_alone(
    settings: QuotaSettings, steps: list[tuple[int, HistoryTarget]]
) -> None:
    clock = ManualClock()
    quota = HistoryQuota(settings, clock)
    for wait_ms, pair in steps:
        clock.advance(wait_ms / 1000)
        reason = quota.allow_call(*pair).reason
        if pair in settings.priority_targets:
            assert reason in (None, "minute_quota", "hour_quota")


@given(SHARE, SHARE, SHARE, SHARE)
def test_thresholds_are_within_bounds_and_in_order(a: float, b: float, c: float, d: float) -> None:
    made = LoadThresholds(a, b, c, d)
    assert 0 <= made.min_interval <= made.warn <= made.reserve <= made.critical <= 1
