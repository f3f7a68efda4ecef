"""A list of markets counts when it is complete, and an unknown market is looked for before it is
refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from collector.markets.book import MarketBook
from tests.support.local_collector import MINUTE, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.local_collector import Collecting

EXCHANGE_INFO = "/api/v3/exchangeInfo"
HOUR_MS = 3_600_000
SYMBOL = "ETH/USDT"


async def save_list(database: Database, root: Path) -> None:
    """As an earlier worker did."""
    async with collecting(database, root) as c:
        await c.venues.with_markets("simulated")


async def lose_a_market(database: Database) -> None:
    removed = await database.markets.delete_many({"symbol": SYMBOL})
    assert removed.deleted_count == 1


async def fetch(c: Collecting, symbol: str = SYMBOL) -> State:
    """How a job for ten bars of the market ends."""
    cursor = Cursor(c.first_ms, c.first_ms + 10 * MINUTE)
    job = await c.job("gap_backfill", symbol=symbol, cursor=cursor)
    ended = await c.until(job, lambda job: job.state in (State.SUCCESS, State.FAILED))
    return ended.state


async def test_a_list_that_another_worker_has_half_written_is_none(
    database: Database, tmp_path: Path
) -> None:
    await save_list(database, tmp_path)
    await lose_a_market(database)
    await database.system.delete_many({"_id": "markets:simulated"})
    book = MarketBook(database)
    assert await book.load("simulated") is None
    assert await book.symbols("simulated") == []
    async with collecting(database, tmp_path) as c:
        assert await fetch(c) is State.SUCCESS
    assert SYMBOL in await book.symbols("simulated")


async def test_a_market_that_was_listed_since_the_list_was_stored_is_found(
    database: Database, tmp_path: Path
) -> None:
    await save_list(database, tmp_path)
    await lose_a_market(database)
    older = {"saved_at": {"$subtract": ["$saved_at", HOUR_MS]}}
    await database.system.update_one({"_id": "markets:simulated"}, [{"$set": older}])
    async with collecting(database, tmp_path) as c:
        assert await fetch(c) is State.SUCCESS


async def test_a_market_that_there_is_not_costs_one_request_for_many_jobs(
    database: Database, tmp_path: Path
) -> None:
    await save_list(database, tmp_path)
    older = {"saved_at": {"$subtract": ["$saved_at", HOUR_MS]}}
    await database.system.update_one({"_id": "markets:simulated"}, [{"$set": older}])
    async with collecting(database, tmp_path) as c:
        for number in range(5):
            assert await fetch(c, f"NO{number}/USDT") is State.FAILED
        assert len(c.journal(EXCHANGE_INFO)) == 1
        jobs = await c.queue.find({"exchange_id": "simulated", "status": "paused"})
        assert {job.document["stats"]["last_error_code"] for job in jobs} == {"bad_request"}


@pytest.mark.parametrize("age_ms", [0, HOUR_MS])
async def test_known_markets_cost_no_request(
    database: Database, tmp_path: Path, age_ms: int
) -> None:
    await save_list(database, tmp_path)
    older = {"saved_at": {"$subtract": ["$saved_at", age_ms]}}
    await database.system.update_one({"_id": "markets:simulated"}, [{"$set": older}])
    async with collecting(database, tmp_path) as c:
        assert await fetch(c) is State.SUCCESS
        assert c.journal(EXCHANGE_INFO) == []
        (job,) = await c.queue.find({"status": "deleted"})
        assert job.status is Status.DELETED
