"""What is kept of FXCM's budget for the series that go first, while histories load."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.exchanges.fxcm.limits import hour_window, minute_window
from collector.exchanges.fxcm.quota_settings import HistoryTarget, QuotaSettings
from tests.support.fxcm.history_quota import HistoryQuota
from tests.support.fxcm.kept import with_windows

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL_SECONDS = 0.27
"""What the SDK takes for a call; it makes one at a time."""
SETTLE_SECONDS = 1.0
OTHERS = [HistoryTarget(f"FX{number}", "1h") for number in range(40)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def delays(settings: QuotaSettings, begin: float, minutes: int) -> list[float]:
    """How many seconds after its close each bar of a priority target is there.

    Forty histories take every call that they get. They begin `begin` seconds after a close.
    """
    clock, now, closes, turn = ManualClock(), begin, 60.0, 0
    quota = HistoryQuota(settings, clock)
    waiting: dict[HistoryTarget, float] = {}
    seen: list[float] = []
    while closes <= minutes * 60 or waiting:
        while now >= closes and closes <= minutes * 60:
            for target in settings.priority_targets:
                if target.tf == "1m" or closes % 300 == 0:
                    waiting.setdefault(target, closes)
            closes += 60
        ready = [target for target, at in sorted(waiting.items()) if now >= at + SETTLE_SECONDS]
        turn += 1
        passed = CALL_SECONDS
        if ready and quota.allow_call(*ready[0]).allowed:
            seen.append(now + passed - waiting.pop(ready[0]))
        elif not (decision := quota.allow_call(*OTHERS[turn % 40])).allowed:
            passed = min(decision.wait_seconds, 0.25 if ready or waiting else closes - now)
        clock.advance(passed)
        now += passed
    return seen


@pytest.mark.parametrize("begin", [0.0, 24.0, 28.0])
def test_bars_of_priority_targets_come_in_time_while_histories_load(begin: float) -> None:
    """Whenever the histories begin: after 120 calls in half a minute there would be none left."""
    assert max(delays(with_windows(QuotaSettings()), begin, minutes=6)) < 5.0


def test_the_hour_is_not_spent_by_histories_alone() -> None:
    """2400 calls are 20 minutes of 120: without a reserve nobody gets one for 40 minutes."""
    assert max(delays(with_windows(QuotaSettings()), 0.0, minutes=30)) < 5.0


def test_a_reserve_covers_what_the_targets_need_and_is_never_less_than_configured() -> None:
    quota = QuotaSettings()
    assert (minute_window(quota).priority_reserve, hour_window(quota).priority_reserve) == (8, 288)
    more = replace(quota, priority_reserve_per_min=20, priority_reserve_per_hour=300)
    assert (minute_window(more).priority_reserve, hour_window(more).priority_reserve) == (20, 300)
    none = replace(quota, priority_targets=frozenset())
    assert (minute_window(none).priority_reserve, hour_window(none).priority_reserve) == (1, 12)


def test_a_reserve_takes_no_more_than_half_of_a_small_window() -> None:
    small = replace(QuotaSettings(), max_calls_per_min=10, max_calls_per_hour=100)
    assert (minute_window(small).priority_reserve, hour_window(small).priority_reserve) == (5, 50)
