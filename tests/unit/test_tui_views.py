"""The viewer's modes, from documents as the API sends them to what is shown."""

from __future__ import annotations

from typing import Any

import pytest

from collector.tui.banners import banners
from collector.tui.fleet_picture import FleetPicture, sampled, with_event, with_figures, with_lists
from collector.tui.modes import BY_KEY, MODES, figures
from collector.tui.sheet import Sheet, texts
from collector.tui.words import duration, gauge, sparkline
from tests.support.fleet_documents import NOW_MS, beat, connector, fleet, job, live_price


def shown(picture: FleetPicture, key: str) -> str:
    return texts(BY_KEY[key].view(picture))


def grid_of(sheet: Sheet, title: str) -> list[dict[str, str]]:
    [grid] = [each for each in sheet.grids if each.title == title]
    names = [column.name for column in grid.columns]
    return [dict(zip(names, (cell.text for cell in row), strict=True)) for row in grid.rows]


def backoff(name: str, **state: Any) -> FleetPicture:
    whole = {"active": True, "sleep_seconds": 5.0, "fail_count": 1, "last_error_type": None}
    diag = {"backoff": {name: {**whole, **state}}}
    return with_event(fleet(), "heartbeat", beat("fxcm", diag=diag))


def banner_texts(picture: FleetPicture) -> list[str]:
    return [each.text for each in banners(picture)]


def test_a_backoff_is_a_banner_with_its_pause_its_error_and_how_often() -> None:
    picture = backoff(
        "fxcm_history", sleep_seconds=45.0, fail_count=3, last_error_type="NetworkError"
    )
    assert banner_texts(picture) == ["FXCM BACKOFF 45 s (NetworkError x3)"]


def test_a_first_failure_has_no_count() -> None:
    picture = backoff("redis", sleep_seconds=15.0, last_error_type="ConnectionError")
    assert banner_texts(picture) == ["REDIS BACKOFF 15 s (ConnectionError)"]


def test_a_backoff_that_is_over_is_no_banner() -> None:
    assert banner_texts(backoff("redis", active=False)) == []


def test_blocks_trips_pauses_and_a_missing_fleet_are_banners() -> None:
    stopped = connector(
        "binance",
        blocked_until=NOW_MS + 30_000,
        blocked_reason="418",
        circuit={"state": "TRIPPED", "err_rate": 0.75, "tripped_until": NOW_MS + 60_000},
        status="paused",
    )
    picture = with_event(fleet(), "connector", stopped)
    assert banner_texts(picture) == [
        "BINANCE BLOCKED 30 s (418)",
        "BINANCE CIRCUIT TRIPPED 60 s (75% errors)",
        "BINANCE PAUSED",
    ]
    assert banner_texts(with_figures(fleet(), (), ())) == ["NO WORKER IS ALIVE"]


def test_before_the_first_lists_have_arrived_nothing_is_an_alarm() -> None:
    assert banner_texts(FleetPicture()) == []
    assert banner_texts(with_figures(FleetPicture(), (), ())) == ["NO WORKER IS ALIVE"]


def test_exchanges_show_budget_circuit_and_jobs() -> None:
    text = shown(fleet(), "1")
    assert "simulated" in text
    assert "30/60" in text
    assert "OPEN" in text


def test_jobs_that_failed_come_first_with_their_error() -> None:
    failed = job("2", state="failed", stats={"last_error": "unknown symbol"})
    picture = with_event(fleet(), "job", failed)
    sheet = BY_KEY["2"].view(picture)
    assert grid_of(sheet, "")[0]["error"] == "unknown symbol"
    assert "1 failed" in texts(sheet)


def test_a_deleted_job_is_no_longer_shown() -> None:
    picture = with_event(fleet(), "job", job("1", status="deleted"))
    assert picture.jobs == {}


def test_workers_show_what_they_have_in_hand() -> None:
    running = job("1", state="running", lock={"locked_by": "host:7:abc", "lock_until": NOW_MS})
    [row] = grid_of(BY_KEY["3"].view(with_event(fleet(), "job", running)), "")
    assert (row["worker"], row["jobs"], row["of"]) == ("abc", "1", "100")
    assert row["seen"] == "5 s ago"


def test_lag_counts_closed_bars_that_are_not_stored() -> None:
    behind = job("1", cursor={"since_ms": NOW_MS - 5 * 60_000})
    [row] = grid_of(BY_KEY["4"].view(with_event(fleet(), "job", behind)), "")
    assert (row["exchange"], row["tf"], row["bars behind"]) == ("simulated", "1m", "5")


@pytest.mark.parametrize(("first_ago", "words"), [(3_600_000, "unconfirmed"), (10**9, "60")])
def test_a_silent_series_is_unconfirmed_for_three_days(first_ago: int, words: str) -> None:
    since, to = NOW_MS - 60 * 60_000, NOW_MS - 3 * 60_000
    heard = [since, to, 1, NOW_MS - first_ago, NOW_MS, since, NOW_MS]
    silent = job("1", cursor={"since_ms": since}, progress={"silences": [heard]})
    sheet = BY_KEY["4"].view(with_event(fleet(), "job", silent))
    for title in ("", "Series behind"):
        [row] = grid_of(sheet, title)
        assert row["bars behind"] == words


def test_a_market_that_is_closed_has_no_lag() -> None:
    sunday_noon = 1_764_504_000_000
    asleep = job(
        "1",
        exchange_id="fxcm",
        symbol="EUR/USD",
        cursor={"since_ms": 1_764_370_500_000},  # Friday 16:55 in New York
    )
    picture = sampled(with_event(FleetPicture(), "job", asleep), sunday_noon, {})
    [row] = grid_of(BY_KEY["4"].view(picture), "")
    assert row["bars behind"] == "0"


def test_prices_show_their_age_and_the_adaptive_cadence() -> None:
    picture = with_event(fleet(), "heartbeat", beat("simulated"))
    picture = with_event(picture, "price", live_price("simulated", "BTC/USDT", age=2.0))
    sheet = BY_KEY["5"].view(picture)
    [row] = grid_of(sheet, "Prices")
    assert (row["symbol"], row["mid"], row["tick age"]) == ("BTC/USDT", "100.5", "2 s")
    [cadence] = grid_of(sheet, "Adaptive cadence")
    assert (cadence["m1"], cadence["m5"], cadence["reason"]) == ("6.0 s", "9.0 s", "idling")
    assert "silence 2.0 s" in texts(sheet)


def test_the_history_budget_shows_reserve_refusals_and_skipped_polls() -> None:
    budget = {
        "calls_60s": 90,
        "calls_3600s": 400,
        "limit_60s": 120,
        "limit_3600s": 2400,
        "throttle_state": "warn",
        "next_slot_seconds": 1.5,
        "last_denied_reason": "priority_reserve",
        "priority": {
            "targets": ["XAU/USD:m1"],
            "reserve_per_min": 1,
            "reserve_per_hour": 12,
            "calls_60s": 4,
            "calls_3600s": 40,
        },
        "skipped_polls": [
            {"symbol": "EUR/USD", "tf": "1m", "count": 2, "last_reason": "min_interval"},
            {"symbol": "GBP/USD", "tf": "5m", "count": 7, "last_reason": "priority_reserve"},
        ],
    }
    sheet = BY_KEY["6"].view(
        with_event(fleet(), "connector", connector("fxcm", history_budget=budget))
    )
    text = texts(sheet)
    assert "throttle warn  next slot 1.5 s  last denied: priority_reserve" in text
    minute, hour = grid_of(sheet, "History budget of fxcm")
    assert (minute["calls"], minute["limit"], minute["reserve"]) == ("90", "120", "1")
    assert (hour["calls"], hour["priority calls"], hour["reserve"]) == ("400", "40", "12")
    assert [row["symbol"] for row in grid_of(sheet, "Skipped polls")] == ["GBP/USD", "EUR/USD"]


def test_the_back_off_mode_shows_each_controller_and_the_queues() -> None:
    totals = {"depth": 3, "capacity": 2000, "enqueued": 10, "processed": 7, "dropped": 0}
    supervisor = {
        "queues": {"ohlcv": {**totals, "backpressure_events": 1}},
        "tasks": {"ohlcv": {"state": "paused", "idle_seconds": 4.25}},
    }
    diag = {"backoff": {"redis": {"active": True, "sleep_seconds": 5.0, "fail_count": 2}}}
    heard = beat("fxcm", diag=diag, supervisor=supervisor)
    sheet = BY_KEY["7"].view(with_event(fleet(), "heartbeat", heard))
    [pause] = grid_of(sheet, "Pauses")
    assert (pause["back-off"], pause["state"], pause["failures"]) == ("redis", "active", "2")
    [queue] = grid_of(sheet, "Publication")
    assert (queue["task"], queue["depth"], queue["backpressure"]) == ("paused", "3", "1")


@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
def test_every_mode_can_be_shown_before_anything_is_known(mode: Any) -> None:
    assert mode.view(FleetPicture()).title


@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
def test_documents_of_another_version_break_no_mode(mode: Any) -> None:
    picture = FleetPicture()
    for name, data in (
        ("connector", {"exchange_id": "x"}),
        ("job", {"id": "1", "exchange_id": None, "type": "history_apply", "status": "active"}),
        ("job", {"id": "2", "exchange_id": "x", "type": "ohlcv_incremental", "status": "active"}),
        ("heartbeat", {"exchange_id": "x", "payload": {}}),
        ("price", {"exchange_id": "x", "symbol": "A/B", "payload": {}}),
        ("market_status", {"exchange_id": "x", "payload": {}}),
        ("something new", {}),
    ):
        picture = with_event(picture, name, data)
    picture = sampled(picture, NOW_MS, figures(picture))
    assert mode.view(picture).title
    assert banner_texts(picture) == []


def test_samples_become_trails_of_bounded_length() -> None:
    picture = fleet()
    for number in range(100):
        picture = with_event(picture, "price", live_price("x", "A/B", mid=float(number)))
        picture = sampled(picture, NOW_MS, figures(picture))
    trail = picture.trail("mid:x:A/B")
    assert (len(trail), trail[-1]) == (60, 99.0)


def test_lists_replace_what_was_known_and_keep_the_trails() -> None:
    picture = sampled(fleet(), NOW_MS, {"usage:simulated": 1.0})
    fresh = with_lists(picture, connectors=(), jobs=(), more_jobs=False, workers=(), live=())
    assert not fresh.connectors
    assert fresh.trail("usage:simulated") == (1.0,)


def test_words_for_a_glance() -> None:
    assert sparkline([1, 2, 3, 8]) == "▁▂▃█"
    assert sparkline([5, 5]) == "▁▁"
    assert gauge(30, 60, 4) == "██░░"
    assert [duration(ms) for ms in (12, 45_000, 180_000, 7_200_000, -5)] == [
        *("12 ms", "45 s", "3 m", "2 h", "0 s")
    ]
