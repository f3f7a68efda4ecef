"""When a job runs next."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.jobs import schedule
from collector.market.moment import epoch_ms
from collector.market.timeframe import Timeframe

MINUTE = 60_000
spreads = st.floats(min_value=0, max_value=1, exclude_max=True)
moments = st.integers(min_value=0, max_value=4_000_000_000_000)


@given(now=moments, spread=spreads, interval=st.integers(1, 10**9))
def test_an_interval_is_kept_within_a_twentieth(now: int, spread: float, interval: int) -> None:
    wait = schedule.Every(interval).next_run(now, spread) - now
    assert abs(wait - interval) <= interval * 0.05 + 1


@given(now=moments, spread=spreads, frame=st.sampled_from(["1m", "5m", "1h", "1d", "1w", "1M"]))
def test_a_bar_close_run_comes_after_the_next_close_that_was_not_served(
    now: int, spread: float, frame: str
) -> None:
    rule = schedule.BarClose(Timeframe.parse(frame), settle_ms=1000)
    run = rule.next_run(now, spread)
    assert run > now
    close = rule.timeframe.floor(run - 1000)
    assert close + 1000 <= run <= close + 1000 + min(2000, rule.timeframe.ms // 20)
    # No close between now and that one has been left out.
    assert rule.timeframe.shift(close, -1) + 1000 <= now


def test_runs_of_one_bar_close_job_follow_each_other_by_one_bar() -> None:
    rule = schedule.BarClose(Timeframe.parse("1m"))
    run = rule.next_run(0, 0.9)
    closes = []
    for _ in range(5):
        closes.append(Timeframe.parse("1m").floor(run))
        run = rule.next_run(run + 37, 0.1)
    assert [b - a for a, b in itertools.pairwise(closes)] == [MINUTE] * 4


def test_a_monthly_job_runs_on_the_first_of_each_month() -> None:
    rule = schedule.BarClose(Timeframe.parse("1M"), settle_ms=1000)
    run, runs = 1_735_689_600_000, []
    for _ in range(3):
        run = rule.next_run(run + 5_000, 0.0)
        runs.append(run - 1000)
    assert runs == [1_738_368_000_000, 1_740_787_200_000, 1_743_465_600_000]  # Feb, Mar, Apr 2025


def test_a_weekly_job_runs_when_its_exchanges_week_is_over() -> None:
    document = {"mode": "bar_close", "timeframe": "1w", "settle_ms": 0}
    friday = 1_642_118_400_000  # 2022-01-14
    assert schedule.parse(document, "kucoin").next_run(friday, 0.0) == friday + 6 * 86_400_000
    assert schedule.parse(document, "binance").next_run(friday, 0.0) == friday + 3 * 86_400_000


def test_cron_is_in_utc() -> None:
    nightly = schedule.Cron("30 2 * * *")
    assert nightly.next_run(0, 0.5) == (2 * 60 + 30) * MINUTE


@pytest.mark.parametrize(
    ("frame", "cadence", "seconds"),
    [
        ("1m", {"m1": 6.0, "m5": 9.0}, 6),
        ("5m", {"m1": 6.0, "m5": 9.0}, 9),
        ("1h", {"m1": 6.0, "m5": 9.0}, 9),
        ("1m", {"m1": 0.1}, 2),
        ("1m", {"m1": 999}, 20),
    ],
)
def test_a_poll_comes_as_the_cadence_says_within_its_bounds(
    frame: str, cadence: dict[str, float], seconds: int
) -> None:
    rule = schedule.Poll(Timeframe.parse(frame)).at_cadence(cadence)
    assert rule.next_run(1_000_000, 0.5) == 1_000_000 + seconds * 1000


@pytest.mark.parametrize("frame", ["1m", "5m", "1h"])
def test_a_poll_without_a_cadence_comes_after_each_close(frame: str) -> None:
    timeframe = Timeframe.parse(frame).at("fxcm", "XAU/USD")
    after_close, poll = schedule.BarClose(timeframe), schedule.Poll(timeframe).at_cadence(None)
    for at in ("2025-12-05T12:34:56Z", "2025-12-05T21:55:01Z"):
        now_ms = epoch_ms(at)
        assert poll.next_run(now_ms, 0.3) == after_close.next_run(now_ms, 0.3)


def test_a_poll_skips_closed_time_after_the_last_bar() -> None:
    """New York closes on Friday, 2025-12-05, at 16:55, which is 21:55 UTC."""
    rule = schedule.Poll(Timeframe.parse("1m").at("fxcm", "XAU/USD"), 2.0)
    closes_ms = epoch_ms("2025-12-05T21:55:00Z")
    assert rule.next_run(closes_ms + 10_000, 0.5) == closes_ms + 12_000
    assert rule.next_run(closes_ms + MINUTE, 0.5) == epoch_ms("2025-12-07T22:00:00Z")


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
        schedule.Every(5000),
        schedule.BarClose(Timeframe.parse("15m")),
        schedule.Poll(Timeframe.parse("5m")),
        schedule.Cron("0 * * * *"),
    ],
)
def test_a_schedule_survives_its_document(rule: schedule.Schedule) -> None:
    assert schedule.parse(rule.to_document()) == rule
