"""When a job runs next."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.jobs import schedule
from collector.market.timeframe import Timeframe

MINUTE = 60_000
spreads = st.floats(min_value=0, max_value=1, exclude_max=True)
moments = st.integers(min_value=0, max_value=4_000_000_000_000)


@given(now=moments, spread=spreads, interval=st.integers(1, 10**9))
def test_an_interval_is_kept_within_a_twentieth(now: int, spread: float, interval: int) -> None:
    wait = schedule.Interval(interval).next_run(now, spread) - now
    assert abs(wait - interval) <= interval * 0.05 + 1


@given(now=moments, spread=spreads, frame=st.sampled_from(["1m", "5m", "1h", "1d", "1w"]))
def test_a_bar_close_run_comes_after_the_next_close_that_was_not_served(
    now: int, spread: float, frame: str
) -> None:
    rule = schedule.BarClose(Timeframe.parse(frame), settle_ms=1000)
    run = rule.next_run(now, spread)
    assert run > now
    close = rule.timeframe.floor(run - 1000)
    assert close + 1000 <= run <= close + 1000 + min(2000, rule.timeframe.ms // 20)
    # No close between now and that one has been left out.
    assert close - rule.timeframe.ms + 1000 <= now


def test_runs_of_one_bar_close_job_follow_each_other_by_one_bar() -> None:
    rule = schedule.BarClose(Timeframe.parse("1m"))
    run = rule.next_run(0, 0.9)
    closes = []
    for _ in range(5):
        closes.append(Timeframe.parse("1m").floor(run))
        run = rule.next_run(run + 37, 0.1)
    assert [b - a for a, b in itertools.pairwise(closes)] == [MINUTE] * 4


def test_cron_is_in_utc() -> None:
    nightly = schedule.Cron("30 2 * * *")
    assert nightly.next_run(0, 0.5) == (2 * 60 + 30) * MINUTE


@pytest.mark.parametrize(
    "document",
    [
        {"mode": "interval", "interval_ms": 0},
        {"mode": "cron", "expression": "every day"},
        {"mode": "cron", "expression": "0 0 30 2 *"},
        {"mode": "bar_close", "timeframe": "1y"},
        {"mode": "sometimes"},
    ],
)
def test_a_wrong_schedule_is_refused_in_words(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"interval_ms|cron|timeframe|schedule.mode"):
        schedule.parse(document)


@pytest.mark.parametrize(
    "rule",
    [
        schedule.Once(),
        schedule.Interval(5000),
        schedule.BarClose(Timeframe.parse("15m")),
        schedule.Cron("0 * * * *"),
    ],
)
def test_a_schedule_survives_its_document(rule: schedule.Schedule) -> None:
    assert schedule.parse(rule.to_document()) == rule
