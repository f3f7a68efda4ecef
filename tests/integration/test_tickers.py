"""From a `tickers_snapshot` job to one document for each market, through real ccxt code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.backoff import Backoff
from collector.exchanges.port import Ticker
from collector.markets.tickers import TickerBoard
from collector.simulated.faults.answers import Empty, Malformed
from tests.support.local_collector import MINUTE, SYMBOL, Collecting, collecting
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
TICKERS = "/api/v3/ticker/24hr"


async def snapshot_job(c: Collecting) -> Job:
    return await c.job("tickers_snapshot", symbol=None, timeframe=None)


async def succeeded(c: Collecting, job: Job, runs: int = 1) -> Job:
    return await c.until(job, lambda job: job.document["stats"]["success"] >= runs)


async def test_every_market_has_its_last_price(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path) as c:
        await succeeded(c, await snapshot_job(c))
        assert len(c.journal(TICKERS)) == 1
        documents = await database.tickers.find({"exchange_id": "simulated"})
        listed = await database.markets.find({"exchange_id": "simulated", "active": True})
        assert {each["symbol"] for each in documents} == {each["symbol"] for each in listed}
        ticker = await TickerBoard(database).find("simulated", SYMBOL)
        assert ticker is not None
        assert ticker["bid"] < ticker["last"] < ticker["ask"]
        assert ticker["volume"] > 0
        opened = ticker["ts"] - ticker["ts"] % MINUTE
        ((_, _, high, low, _, _),) = c.truth(opened, opened + MINUTE)
        assert low <= ticker["last"] <= high


async def test_a_later_snapshot_replaces_the_earlier_one(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path) as c:
        job = await succeeded(c, await snapshot_job(c))
        before = await database.tickers.find({}, sort=[("_id", 1)])
        await c.queue.run(job.id)
        await succeeded(c, job, runs=2)
        after = await database.tickers.find({}, sort=[("_id", 1)])
        assert [each["_id"] for each in after] == [each["_id"] for each in before]
        assert all(b["ts"] > a["ts"] for a, b in zip(before, after, strict=True))


async def test_an_answer_without_tickers_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        for fault in (Empty, Malformed):
            c.exchange.faults.add(fault(endpoint="ticker/24hr", count=1))
        await succeeded(c, await snapshot_job(c))
        assert {kind for entry in c.journal(TICKERS) for kind in entry.faults}
        assert await database.tickers.count_documents({"last": {"$gt": 0}}) == 5


async def test_an_older_ticker_never_replaces_a_newer_one(database: Database) -> None:
    board = TickerBoard(database)
    newer = Ticker("$ETH/USDT", 2.0, 1.0, 3.0, 10.0, ts=2_000)
    await board.save("simulated", [newer])
    await board.save("simulated", [Ticker("$ETH/USDT", 9.0, 8.0, 10.0, 1.0, ts=1_000)])
    kept = await board.find("simulated", "$ETH/USDT")
    assert kept is not None
    assert (kept["last"], kept["ts"]) == (2.0, 2_000)
    await board.save("simulated", [Ticker("$ETH/USDT", None, None, None, None, ts=3_000)])
    kept = await board.find("simulated", "$ETH/USDT")
    assert kept is not None
    assert (kept["last"], kept["ts"], kept["symbol"]) == (None, 3_000, "$ETH/USDT")
    assert kept["seen_at"] > 3_000
