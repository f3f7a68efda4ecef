"""What the log has of FXCM's history budget: each reason, and never a flood."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.exchanges.fxcm.quota_settings import QuotaSettings
from tests.support.fxcm.history_quota import SHOWN_SKIPS, HistoryQuota

if TYPE_CHECKING:
    from collections.abc import Callable

Lines = list[tuple[str, str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], Lines]:
    """The lines since the last look: level and text."""
    caplog.set_level(logging.INFO, logger="collector.fxcm.history")

    def taken() -> Lines:
        found = [(each.levelname, each.getMessage()) for each in caplog.records]
        caplog.clear()
        return found

    return taken


def spent(clock: ManualClock, limit: int = 4) -> HistoryQuota:
    """A budget of which one call is left, kept for priority pairs."""
    quota = HistoryQuota(
        replace(QuotaSettings(), max_calls_per_min=limit, min_interval_by_tf={}), clock
    )
    for _ in range(limit - 1):
        assert quota.allow_call("GBP/USD", "m1").allowed
    return quota


def test_a_denial_is_logged_with_its_reason_and_its_wait(lines: Callable[[], Lines]) -> None:
    clock = ManualClock()
    quota = spent(clock)
    quota.allow_call("GBP/USD", "m1")
    assert lines() == [
        (
            "INFO",
            "History quota guard triggered symbol=GBPUSD tf=1m reason=priority_reserve wait=60.00",
        ),
        ("INFO", "FXCM history throttle (priority_reserve) symbol=GBPUSD tf=1m wait=60.00"),
    ]


def test_a_pair_has_one_throttle_line_in_twelve_seconds(lines: Callable[[], Lines]) -> None:
    clock = ManualClock()
    quota = spent(clock)
    for _ in range(23):
        quota.allow_call("GBP/USD", "m1")
        quota.allow_call("USD/JPY", "m1")
        clock.advance(1)
    throttled = [text for _, text in lines() if "throttle" in text]
    assert [("GBPUSD" in text, "USDJPY" in text) for text in throttled] == [
        (True, False),
        (False, True),
    ] * 2


def test_the_quotas_are_warnings_and_a_new_reason_is_logged_at_once(
    lines: Callable[[], Lines],
) -> None:
    clock = ManualClock()
    quota = spent(clock)
    quota.allow_call("GBP/USD", "m1")
    assert quota.allow_call("XAU/USD", "m1").allowed
    lines()
    quota.allow_call("GBP/USD", "m1")
    assert lines() == [
        (
            "WARNING",
            "History quota guard triggered symbol=GBPUSD tf=1m reason=minute_quota wait=60.00",
        )
    ]
    clock.advance(12)
    quota.allow_call("GBP/USD", "m1")
    assert lines() == [
        ("WARNING", "FXCM history throttle (minute_quota) symbol=GBPUSD tf=1m wait=48.00")
    ]


def test_a_pair_that_is_allowed_and_refused_in_turn_does_not_flood(
    lines: Callable[[], Lines],
) -> None:
    clock = ManualClock()
    settings = replace(QuotaSettings(), max_calls_per_min=100, max_calls_per_hour=100)
    quota = HistoryQuota(settings, clock)
    for _ in range(45):
        assert quota.allow_call("USD/JPY", "H1").allowed
    for _ in range(11):
        quota.allow_call("GBP/USD", "m1")
        clock.advance(1)
    assert len(lines()) == 2


def test_a_poll_left_out_for_another_cause_is_counted_with_its_reason() -> None:
    quota = HistoryQuota(QuotaSettings(), ManualClock())
    for number in range(SHOWN_SKIPS + 5):
        for _ in range(number):
            quota.register_skip(f"FX{number}", "m1", "backoff")
    shown = quota.snapshot()["skipped_polls"]
    assert [each["count"] for each in shown] == list(range(14, 4, -1))
    assert shown[0]["by_reason"] == {"backoff": 14}
    assert quota.snapshot()["last_denied_reason"] is None
