"""The exchange's clock: measured, logged when it drifts, and used to decide whether a bar has
ended.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.jobs.job import Cursor
from collector.metrics import EXCHANGE_CLOCK_DRIFT
from collector.operations.trouble_facts import troubles_now
from collector.simulated.faults.answers import ServerError
from tests.support.local_collector import DAY, MINUTE, collecting
from workers.exchange_clock import ExchangeClock

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.answer import Answer
    from collector.mongo.client import Database

AHEAD_MS = 30_000
BEHIND_MS = -90_000
SLACK_MS = 5_000


class Told:
    """An exchange that reports a time so far from MongoDB's."""

    id = "simulated"

    def __init__(self, database: Database) -> None:
        self.ahead_ms = 0
        self._server_clock = database.server_clock

    async def server_ms(self) -> int:
        return self._server_clock.now_ms() + self.ahead_ms


async def test_a_drifting_clock_is_told_once_and_once_when_it_is_over(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ExchangeClock(database.server_clock, SystemClock())
    exchange: Any = Told(database)
    with caplog.at_level(logging.INFO):
        for ahead_ms in (0, AHEAD_MS, AHEAD_MS + 5_000, 0, 0, -AHEAD_MS):
            exchange.ahead_ms = ahead_ms
            measured = await clock.measure(exchange)
            assert abs(measured.drift_ms - ahead_ms) <= SLACK_MS
            assert abs(clock.now_ms() - (database.server_clock.now_ms() + ahead_ms)) <= SLACK_MS
    lines = [record.getMessage() for record in caplog.records]
    drifting = [line for line in lines if "E_TIME_DRIFT" in line]
    assert len(drifting) == 2
    assert len([line for line in lines if "clock_drift_over" in line]) == 1


async def test_a_refresh_of_the_markets_measures_the_clock(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting(database, tmp_path) as c:
        c.exchange.offset_ms = AHEAD_MS
        with caplog.at_level(logging.WARNING):
            job = await c.job("markets_refresh", symbol=None, timeframe=None)
            await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        assert "E_TIME_DRIFT" in caplog.text
        told = EXCHANGE_CLOCK_DRIFT.labels("simulated")._value.get()
        assert AHEAD_MS - SLACK_MS < told * 1000 < AHEAD_MS + SLACK_MS


async def test_a_drift_is_seen_in_the_answers_of_everyday_work(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting(database, tmp_path) as c:
        c.exchange.offset_ms = AHEAD_MS
        now_ms = c.exchange.now_ms()
        cursor = Cursor(since_ms=now_ms - now_ms % MINUTE - 10 * MINUTE)
        with caplog.at_level(logging.WARNING):
            job = await c.job("ohlcv_incremental", cursor=cursor)
            await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        assert "E_TIME_DRIFT" in caplog.text
        await c.queue.run(job.id)
        await c.until(job, lambda job: job.document["stats"]["success"] >= 2)
        [trouble] = [each for each in await troubles_now(database) if each.kind == "clock_drift"]
        assert trouble.exchange_id == "simulated"
        assert "s ahead of MongoDB's" in trouble.reason


async def test_an_exchange_that_does_not_tell_the_time_is_still_refreshed(
    database: Database, tmp_path: Path
) -> None:
    faults = (ServerError(endpoint="time"),)
    async with collecting(database, tmp_path, faults=faults) as c:
        job = await c.job("markets_refresh", symbol=None, timeframe=None)
        await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        assert await database.markets.count_documents({}) == 5


def without_a_date(patch: pytest.MonkeyPatch) -> None:
    """Answers of a venue that does not report when it gave them."""
    dated = CcxtExchange.fetch_bars

    async def undated(self: CcxtExchange, *asked: Any) -> Answer:
        return replace(await dated(self, *asked), server_ms=None)

    patch.setattr(CcxtExchange, "fetch_bars", undated)


@pytest.mark.parametrize("dated", [True, False])
async def test_a_bar_is_closed_by_the_exchanges_clock_and_not_by_ours(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dated: bool
) -> None:
    if not dated:
        without_a_date(monkeypatch)
    async with collecting(database, tmp_path) as c:
        c.exchange.offset_ms = BEHIND_MS
        now_ms = c.exchange.now_ms()
        since_ms = now_ms - now_ms % MINUTE - 10 * MINUTE
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=since_ms))
        await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
        stored = c.stored(since_ms, now_ms + DAY)
        assert len(stored) >= 9
        # By MongoDB's clock the bar that is running at the exchange has ended.
        assert stored[-1][0] + MINUTE <= c.exchange.now_ms()
        assert stored == c.truth(since_ms, stored[-1][0] + 1)
