"""FXCM that fails: pauses that grow to their ceiling, are reported, and end with a success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.durations import HOUR_MS
from collector.errors import ExchangeUnavailable
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
