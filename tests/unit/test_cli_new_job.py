"""From the words of `collector job add` to a request for a job."""

from __future__ import annotations

import pytest

from collector.cli.actions.new_job import Wanted, params_of, request_of, schedule_of
from collector.cli.actions.streams import split_timeframes
from collector.cli.failures import UsageMistake, failure
from collector.errors import InvalidInput
from collector.jobs.schedule import Cron, Every
from collector.operations.new_job import job_spec

DAY = 86_400_000
NOW = 1_735_732_800_000 + 12_345


def test_spans_are_moments_before_now() -> None:
    wanted = Wanted("binance", "ohlcv_backfill", "BTC/USDT", "1m", since="10d", until="2024-12-31")
    request = request_of(wanted, NOW)
    assert (request.since, request.until) == (NOW - 10 * DAY, 1_735_603_200_000)
    with pytest.raises(InvalidInput):
        request_of(Wanted("binance", "ohlcv_backfill", since="nonsense"), NOW)


def test_fields_are_named_as_options() -> None:
    with pytest.raises(InvalidInput) as refused:
        job_spec(request_of(Wanted("binance", "gap_backfill"), NOW), NOW)
    told = failure(refused.value)
    needed = "--symbol and --timeframe and --since and --until"
    assert (told.message, told.exit_code) == (f"gap_backfill needs {needed}", 2)


def test_a_schedule_is_one_of_two() -> None:
    assert schedule_of(Wanted("b", "compact")) is None
    assert schedule_of(Wanted("b", "compact", interval_ms=5000)) == Every(5000)
    assert schedule_of(Wanted("b", "compact", cron="0 * * * *")) == Cron("0 * * * *")
    with pytest.raises(UsageMistake, match="exclude"):
        schedule_of(Wanted("b", "compact", interval_ms=5000, cron="0 * * * *"))
    with pytest.raises(UsageMistake, match="cron"):
        schedule_of(Wanted("b", "compact", cron="soon"))


def test_a_parameter_is_a_name_and_a_value() -> None:
    given = ("symbols=BTC/USDT, ETH/USDT", "watch_bars=false", "price_snap_interval_seconds=0.5")
    assert params_of("price_stream", (*given, "note=for Ann, not Bob", "other=[1]")) == {
        "symbols": ["BTC/USDT", "ETH/USDT"],
        "watch_bars": False,
        "price_snap_interval_seconds": 0.5,
        "note": "for Ann, not Bob",
        "other": "[1]",
    }
    with pytest.raises(UsageMistake, match="NAME=VALUE"):
        params_of("price_stream", ["symbols"])


def test_a_list_of_timeframes_has_no_repeats() -> None:
    assert split_timeframes("1m, 1h,1m") == ["1m", "1h"]
    with pytest.raises(UsageMistake):
        split_timeframes(" , ")
