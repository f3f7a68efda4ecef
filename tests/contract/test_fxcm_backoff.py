"""FXCM that fails: pauses that grow to their ceiling, are reported, and end with a success."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.durations import HOUR_MS
from collector.errors import ExchangeUnavailable, RetryLater
from collector.market.calendar.fx import FX
from collector.market.timeframe import Timeframe
from tests.support.fxcm.adapter import AdapterDesk, adapter
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.answer import Answer
    from tests.support.fxcm.server import FakeServer

BROKEN = "PriceHistoryManager error: connection reset. code: OtherError"


def fetched(desk: AdapterDesk, tf: str = "1m") -> Any:
    timeframe = Timeframe.parse(tf).by(FX)
    return desk.exchange.fetch_bars("EUR/USD", timeframe, NOON_MS - HOUR_MS, 5)


def reported(desk: AdapterDesk) -> dict[str, Any]:
    return dict(desk.right.diags[-1]["backoff"]["fxcm_history"])


async def test_failed_history_pauses_longer_each_time_and_a_success_ends_it(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        fxcm_server.change(history_error=BROKEN)
        for count in range(1, 9):
            with pytest.raises(ExchangeUnavailable):
                await fetched(desk)
            diag = reported(desk)
            assert (diag["active"], diag["fail_count"]) == (True, count)
            assert diag["sleep_seconds"] <= 180
            asked = fxcm_server.count("history")
            with pytest.raises(ExchangeUnavailable) as refused:
                await fetched(desk)  # nobody is asked during the pause
            assert fxcm_server.count("history") == asked
            assert 0 < (refused.value.retry_after_ms or 0) <= diag["sleep_seconds"] * 1000 + 1
            desk.clock.advance(diag["sleep_seconds"] + 0.001)  # it is shown rounded
        assert diag["sleep_seconds"] >= 180 * 0.85
        assert diag["last_error_type"] == "ExchangeUnavailable"
        fxcm_server.change(history_error=None)
        page: Answer = await fetched(desk)
        assert len(page.rows) == 5
        assert reported(desk) == {
            "active": False,
            "sleep_seconds": 5.0,
            "last_error_type": None,
            "fail_count": 0,
            "last_error_ts": None,
        }


async def test_a_failure_has_the_kind_that_the_sdk_gave_it(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        for text, kind in (
            ("QuotesManager error: gone", "unavailable"),
            ("Session is not valid", "session_lost"),
        ):
            fxcm_server.change(history_error=text)
            with pytest.raises(RetryLater):
                await fetched(desk)
            assert reported(desk)["last_error_type"] == kind
            desk.clock.advance(180)


async def test_a_login_that_succeeds_ends_the_pause_that_a_refused_one_began(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    fxcm_server.change(refuse="ORA-499: HTTP request failed")
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        with pytest.raises(ExchangeUnavailable):
            await desk.markets()
        assert reported(desk)["last_error_type"] == "unavailable"
        fxcm_server.change(refuse=None)
        desk.clock.advance(6)
        await desk.markets()
        assert not reported(desk)["active"], "no call for history was needed"


async def test_a_login_between_two_failed_calls_does_not_shorten_the_pause(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        for count in (1, 2):
            fxcm_server.change(hold_history=True)
            asking = asyncio.create_task(fetched(desk))
            await fxcm_server.seen("history", count)
            fxcm_server.say("status", status="SESSION_LOST", ready_after=0)
            with pytest.raises(ExchangeUnavailable):
                await asking
            await fxcm_server.seen("gone", count)
            assert reported(desk)["fail_count"] == count
            desk.clock.advance(60)
            await desk.exchange.fetch_tickers()
        assert fxcm_server.count("login") == 3


async def test_a_call_for_history_names_its_series(
    fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> None:
    async with adapter(fxcm_server, fxcm_python, tmp_path) as desk:
        await desk.markets()
        for tf in ("1m", "5m", "1h"):
            await fetched(desk, tf)
        keys = [answer.call.key for answer in desk.permit.answers]
    assert keys == ["EURUSD:1m", "EURUSD:5m", "EURUSD:1h"]
    assert desk.right.diags == []  # there is nothing to report while nothing fails
