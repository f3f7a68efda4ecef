"""From the words of `collector job add` to a job."""

from __future__ import annotations

import pytest

from collector.cli.actions.known import known_timeframe, known_type
from collector.cli.actions.new_job import Wanted, check_shape, cursor_of, schedule_of
from collector.cli.actions.streams import split_timeframes
from collector.cli.failures import UsageMistake
from collector.jobs.schedule import Cron, Interval
from collector.market.timeframe import Timeframe

MINUTE, DAY = 60_000, 86_400_000
NOW = 1_735_732_800_000 + 12_345
FRAME = Timeframe.parse("1m")
OPEN = NOW - 12_345


def wanted(kind: str, **fields: str) -> Wanted:
    return Wanted("binance", kind, **{"symbol": "BTC/USDT", "timeframe": "1m", **fields})


def test_history_runs_from_the_first_bar_to_now_unless_told() -> None:
    whole = cursor_of(wanted("ohlcv_backfill"), FRAME, NOW)
    assert (whole.since_ms, whole.until_ms) == (0, OPEN)
    assert cursor_of(wanted("ohlcv_from_trades"), FRAME, NOW) == whole
    part = cursor_of(wanted("ohlcv_backfill", since="10d", until="5d"), FRAME, NOW)
    assert (part.since_ms, part.until_ms) == (NOW - 10 * DAY, OPEN - 5 * DAY)


def test_no_history_is_asked_for_beyond_now() -> None:
    late = cursor_of(wanted("ohlcv_backfill", until="2099-01-01"), FRAME, NOW)
    assert late.until_ms == OPEN


def test_new_bars_begin_with_the_open_one() -> None:
    assert cursor_of(wanted("ohlcv_incremental"), FRAME, NOW).since_ms == OPEN


def test_trades_begin_now_unless_told() -> None:
    assert cursor_of(Wanted("binance", "trades_incremental", "BTC/USDT"), None, NOW).since_ms == NOW
    early = Wanted("binance", "trades_incremental", "BTC/USDT", since="2d")
    assert cursor_of(early, None, NOW).since_ms == NOW - 2 * DAY


@pytest.mark.parametrize(
    ("since", "until"), [("2099-01-01", None), ("5d", "10d"), ("1s", None), ("nonsense", None)]
)
def test_a_range_that_holds_nothing_is_refused(since: str, until: str | None) -> None:
    fields = {"since": since} | ({"until": until} if until else {})
    with pytest.raises(UsageMistake):
        cursor_of(wanted("ohlcv_backfill", **fields), FRAME, NOW)


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Wanted("binance", "ohlcv_backfill"), "needs --symbol and --timeframe"),
        (Wanted("binance", "ohlcv_incremental", "BTC/USDT"), "needs --timeframe"),
        (wanted("ohlcv_incremental", until="2025-01-01"), "has no --until"),
        (wanted("gap_backfill", since="5d"), "needs --until"),
        (wanted("compact"), "has no --symbol or --timeframe"),
        (wanted("tickers_snapshot"), "has no --symbol or --timeframe"),
        (wanted("trades_incremental"), "has no --timeframe"),
        (Wanted("binance", "trades_incremental"), "needs --symbol"),
        (Wanted("binance", "ohlcv_from_trades"), "needs --symbol and --timeframe"),
    ],
)
def test_each_type_has_its_own_shape(job: Wanted, words: str) -> None:
    with pytest.raises(UsageMistake, match=words):
        check_shape(job)


def test_shapes_that_fit() -> None:
    check_shape(Wanted("binance", "markets_refresh"))
    check_shape(wanted("gap_backfill", since="5d", until="4d"))
    check_shape(wanted("ohlcv_backfill"))


def test_a_schedule_is_one_of_two() -> None:
    assert schedule_of(Wanted("b", "compact")) is None
    assert schedule_of(Wanted("b", "compact", interval_ms=5000)) == Interval(5000)
    assert schedule_of(Wanted("b", "compact", cron="0 * * * *")) == Cron("0 * * * *")
    with pytest.raises(UsageMistake, match="exclude"):
        schedule_of(Wanted("b", "compact", interval_ms=5000, cron="0 * * * *"))
    with pytest.raises(UsageMistake, match="cron"):
        schedule_of(Wanted("b", "compact", cron="soon"))


def test_types_and_timeframes_have_near_matches() -> None:
    with pytest.raises(UsageMistake, match="did you mean ohlcv_backfill"):
        known_type("ohlcv_backfil")
    with pytest.raises(UsageMistake, match="it has 1h, 1d"):
        known_timeframe("7m", ("1h", "1d"))
    assert known_timeframe("m1") == "1m"
    assert split_timeframes("1m, 1h,1m") == ["1m", "1h"]
    with pytest.raises(UsageMistake):
        split_timeframes(" , ")
