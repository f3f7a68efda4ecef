"""What is a valid job, whoever asks for it."""

from __future__ import annotations

from typing import Any

import pytest

from collector.errors import InvalidInput
from collector.jobs.job import Cursor
from collector.jobs.schedule import Cron, Every
from collector.operations.market_names import check_timeframe
from collector.operations.new_job import JobRequest, job_spec, known_type

DAY = 86_400_000
OPEN = 1_735_732_800_000
NOW = OPEN + 12_345


def asked(kind: str, **fields: Any) -> JobRequest:
    return JobRequest("binance", kind, **{"symbol": "BTC/USDT", "timeframe": "1m", **fields})


def cursor(request: JobRequest) -> Cursor:
    found = job_spec(request, NOW).cursor
    assert isinstance(found, Cursor)
    return found


def test_history_runs_from_the_first_bar_to_now_unless_told() -> None:
    whole = cursor(asked("ohlcv_backfill"))
    assert (whole.since_ms, whole.until_ms) == (0, OPEN)
    assert cursor(asked("ohlcv_from_trades")) == whole


@pytest.mark.parametrize("kind", ["ohlcv_backfill", "gap_backfill"])
def test_both_ends_of_history_are_on_the_grid_of_its_bars(kind: str) -> None:
    part = cursor(asked(kind, since=NOW - 10 * DAY, until=NOW - 5 * DAY))
    assert (part.since_ms, part.until_ms) == (OPEN - 10 * DAY, OPEN - 5 * DAY)


def test_no_history_is_asked_for_beyond_now() -> None:
    assert cursor(asked("ohlcv_backfill", until=NOW + DAY)).until_ms == OPEN


def test_new_bars_begin_with_the_open_one() -> None:
    assert cursor(asked("ohlcv_incremental")).since_ms == OPEN
    assert cursor(asked("ohlcv_incremental", since=NOW - DAY)).since_ms == OPEN - DAY


def test_a_week_that_begins_before_1970_begins_with_1970() -> None:
    assert cursor(asked("ohlcv_incremental", timeframe="1w", since=1)).since_ms == 0


def test_trades_begin_now_unless_told() -> None:
    assert cursor(asked("trades_incremental", timeframe=None)).since_ms == NOW
    early = asked("trades_incremental", timeframe=None, since=NOW - 2 * DAY)
    assert cursor(early).since_ms == NOW - 2 * DAY


@pytest.mark.parametrize(
    ("since", "until", "code"),
    [
        (NOW + 1, None, "in_the_future"),
        (NOW - DAY, NOW - 2 * DAY, "until_before_since"),
        (NOW - 1000, None, "nothing_to_fetch"),
        (NOW - 2000, NOW - 1000, "nothing_to_fetch"),
    ],
)
def test_a_range_that_holds_nothing_is_refused(since: int, until: int | None, code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        job_spec(asked("ohlcv_backfill", since=since, until=until), NOW)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("request_", "field", "words"),
    [
        (JobRequest("b", "ohlcv_backfill"), "symbol", "needs `symbol` and `timeframe`"),
        (JobRequest("b", "ohlcv_incremental", "BTC/USDT"), "timeframe", "needs `timeframe`"),
        (asked("ohlcv_incremental", until=NOW), "until", "has no `until`"),
        (asked("gap_backfill", since=NOW - DAY), "until", "needs `until`"),
        (asked("compact"), "symbol", "has no `symbol` or `timeframe`"),
        (asked("tickers_snapshot"), "symbol", "has no `symbol` or `timeframe`"),
        (asked("trades_incremental"), "timeframe", "has no `timeframe`"),
        (JobRequest("b", "trades_incremental"), "symbol", "needs `symbol`"),
        (JobRequest("b", "markets_refresh", since=1), "since", "has no `since`"),
    ],
)
def test_each_type_has_its_own_fields(request_: JobRequest, field: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        job_spec(request_, NOW)
    assert refused.value.field == field


def test_a_schedule_that_never_comes_is_refused() -> None:
    plain = JobRequest("b", "compact", schedule=Every(5_000))
    assert job_spec(plain, NOW).effective_schedule == Every(5_000)
    never = JobRequest("b", "compact", schedule=Cron("0 0 */31 2 1#5"))
    with pytest.raises(InvalidInput, match="never comes"):
        job_spec(never, NOW)


def test_a_schedule_that_comes_all_the_time_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 1000") as refused:
        job_spec(JobRequest("b", "compact", schedule=Every(999)), NOW)
    assert refused.value.field == "schedule.interval_ms"


def test_params_have_a_largest_size() -> None:
    with pytest.raises(InvalidInput, match="at most") as refused:
        job_spec(JobRequest("b", "compact", params={"note": "x" * 2**20}), NOW)
    assert refused.value.field == "params"


def test_params_of_a_type_have_their_form_and_notes_are_kept() -> None:
    noted = {"any_age": True, "ticket": "OPS-1"}
    assert job_spec(JobRequest("b", "gap_scan", params=noted), NOW).params == noted
    with pytest.raises(InvalidInput) as refused:
        job_spec(JobRequest("b", "gap_scan", params={"any_age": "yes"}), NOW)
    assert (refused.value.field, refused.value.code) == ("params.any_age", "bad_param")
    assert job_spec(JobRequest("b", "compact", params={"any_age": "yes"}), NOW).params


def test_types_and_timeframes_have_near_matches() -> None:
    with pytest.raises(InvalidInput, match="did you mean ohlcv_backfill"):
        known_type("ohlcv_backfil")
    with pytest.raises(InvalidInput, match="there are compact, full_scan"):
        known_type("count")
    with pytest.raises(InvalidInput, match="it has 1h, 1d"):
        check_timeframe("7m", ("1h", "1d"))
    assert check_timeframe("m1") == "1m"
