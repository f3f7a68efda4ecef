"""From a `trades_incremental` job to the trades of a day, through real ccxt code."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.jobs.job import Cursor
from collector.jobs.states import State
from collector.simulated.faults.answers import Malformed, ServerError
from collector.store.trades import read_trades
from tests.support.local_collector import DAY, MINUTE, SYMBOL, Collecting, collecting
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
HOUR = 60 * MINUTE
TRADES = "/api/v3/aggTrades"


async def trades_job(c: Collecting, since_ms: int) -> Job:
    cursor = Cursor(since_ms=since_ms)
    return await c.job("trades_incremental", timeframe=None, cursor=cursor)


async def succeeded(c: Collecting, job: Job, runs: int = 1) -> Job:
    return await c.until(job, lambda job: job.document["stats"]["success"] >= runs)


def trades(c: Collecting, from_ms: int, to_ms: int) -> list[Any]:
    table = read_trades(c.store.storage, "simulated", SYMBOL, from_ms, to_ms)
    return table.to_pylist()


def bars_of(told: list[Any]) -> list[Any]:
    """The trades folded into minutes, as rows of (ts, o, h, l, c, v)."""
    bars = []
    for minute, group in groupby(told, lambda each: each["ts"] // MINUTE * MINUTE):
        rows = list(group)
        prices = [row["price"] for row in rows]
        volume = sum(row["amount"] for row in rows)
        bars.append((minute, prices[0], max(prices), min(prices), prices[-1], volume))
    return bars


def assert_whole(c: Collecting, from_ms: int, to_ms: int) -> None:
    """The trades of every minute are its bar, and none is there twice."""
    told = trades(c, from_ms, to_ms)
    ids = [each["id"] for each in told]
    assert len(ids) == len(set(ids))
    made, truth = bars_of(told), c.truth(from_ms, to_ms)
    assert [bar[:5] for bar in made] == [bar[:5] for bar in truth]
    assert [bar[5] for bar in made] == pytest.approx([bar[5] for bar in truth])


async def test_the_trades_of_every_minute_are_its_bar(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        now = c.exchange.now_ms()
        since = now - now % HOUR - 2 * HOUR
        done = await succeeded(c, await trades_job(c, since))
        assert_whole(c, since, since + 2 * HOUR)
        assert done.cursor.since_ms > since + 2 * HOUR - MINUTE
        assert len(c.journal(TRADES)) > 2, "more than one page was needed"


async def test_history_begins_where_the_market_was_listed(
    database: Database, tmp_path: Path
) -> None:
    now = SystemClock().wall_ms()
    async with collecting(database, tmp_path, listed_ms=now - now % HOUR - 2 * HOUR) as c:
        await succeeded(c, await trades_job(c, c.first_ms - 300 * DAY))
        assert trades(c, 0, c.first_ms + MINUTE)[0]["ts"] == c.first_ms


async def test_each_day_has_a_file_and_other_readers_see_no_series(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        now = c.exchange.now_ms()
        midnight = now - now % DAY
        since = midnight - 10 * MINUTE
        await c.until(await trades_job(c, since), lambda job: job.cursor.since_ms > midnight + 1)
        files = sorted(tmp_path.rglob("trades/*.parquet"))
        assert len(files) == 2
        assert [file.parent.parent.name for file in files] == ["BTC-USDT", "BTC-USDT"]
        assert_whole(c, since, midnight)
        assert c.store.series() == ()


async def test_trades_told_again_are_stored_once(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        now = c.exchange.now_ms()
        since = now - now % MINUTE - 30 * MINUTE
        job = await succeeded(c, await trades_job(c, since))
        first = trades(c, since, since + 20 * MINUTE)
        await c.database.jobs.update_one({"_id": job.id}, {"$set": {"cursor.since_ms": since}})
        await c.queue.run(job.id)
        await succeeded(c, job, runs=2)
        assert trades(c, since, since + 20 * MINUTE) == first
        assert_whole(c, since, since + 20 * MINUTE)


@pytest.mark.parametrize("fault", [ServerError, Malformed])
async def test_an_answer_that_fails_half_way_costs_nothing(
    database: Database, tmp_path: Path, fault: Any
) -> None:
    faults = (fault(endpoint="aggTrades", count=2, probability=0.4),)
    async with collecting(database, tmp_path, faults=faults, config=CONFIG) as c:
        now = c.exchange.now_ms()
        since = now - now % HOUR - 2 * HOUR
        await succeeded(c, await trades_job(c, since))
        assert_whole(c, since, since + 2 * HOUR)
        assert [entry for entry in c.journal(TRADES) if entry.faults], "nothing went wrong"
        good = [entry.start_ms for entry in c.journal(TRADES) if not entry.faults]
        assert len(good) == len(set(good)), "what had been answered was asked for again"


async def test_a_spent_budget_stops_the_job_and_keeps_what_it_has(
    database: Database, tmp_path: Path
) -> None:
    budget = 4
    async with collecting(database, tmp_path, limits=Limits(budget, HOUR), config=CONFIG) as c:
        now = c.exchange.now_ms()
        since = now - now % HOUR - 20 * HOUR
        job = await trades_job(c, since)
        waiting = await c.until(job, lambda job: job.state is State.WAITING)
        assert len(c.exchange.journal.since()) == budget, "every request has its token"
        reached = waiting.cursor.since_ms // MINUTE * MINUTE
        assert reached > since
        assert_whole(c, since, reached)


async def test_a_renamed_market_goes_on_under_its_new_name(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        refresh = await c.job("markets_refresh", symbol=None, timeframe=None)
        await succeeded(c, refresh)
        job = await succeeded(c, await trades_job(c, c.exchange.now_ms() - HOUR))
        c.exchange.rename(SYMBOL, "BTCX/USDT")
        await c.queue.run(refresh.id)
        await succeeded(c, refresh, runs=2)
        found = await c.queue.find({"type": "trades_incremental", "symbol": "BTCX/USDT"})
        assert [each.cursor.since_ms >= job.cursor.since_ms for each in found] == [True]


async def test_a_job_without_a_symbol_waits_for_an_operator(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await c.job("trades_incremental", symbol=None, timeframe=None)
        failed = await c.until(job, lambda job: bool(job.document["stats"]["last_error"]))
        assert "needs a symbol" in failed.document["stats"]["last_error"]
