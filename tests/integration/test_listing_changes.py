"""Markets that leave, come back and change their names, and what becomes of jobs and series."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.backoff import Backoff
from collector.clock import SystemClock
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.jobs.freezing import Freezing, Frozen
from collector.jobs.job import Cursor
from collector.jobs.states import State, Status
from collector.market.bar_rows import BarRows
from collector.market.interval import Interval
from collector.market.series import Series
from collector.markets.book import MarketBook
from collector.pipeline.evidence import LATEST_MS
from collector.reader import CandleReader
from tests.support.local_collector import (
    MINUTE,
    SYMBOL,
    Collecting,
    asked_again_after,
    collecting,
    gap_jobs_at_rest,
    no_more_gap_jobs,
    scanned,
)
from workers.handlers.incremental import LOOK_BACK_BARS
from workers.runtime import WorkerConfig

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from collector.exchanges.port import Answer, Call
    from collector.jobs.job import Job
    from collector.market import answer
    from collector.mongo.client import Database, Document

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
LATER_MS = 4_000_000_000_000
NEW = "BTCX/USDT"


async def refreshed(c: Collecting) -> Job:
    """The markets as the exchange lists them now, and everything done about them."""
    job = await c.job("markets_refresh", symbol=None, timeframe=None)
    runs = job.document["stats"]["success"]
    if runs:
        await c.queue.run(job.id)
    return await c.until(job, lambda job: job.document["stats"]["success"] > runs)


async def market(c: Collecting, symbol: str = SYMBOL) -> Document:
    found = await c.database.markets.find_one({"symbol": symbol})
    assert found is not None
    return found


def minute(c: Collecting, ago: int) -> int:
    """The start of a minute, so many minutes before the one in which the collector started."""
    return c.started_ms - c.started_ms % MINUTE - ago * MINUTE


async def live(c: Collecting, since_ms: int) -> Job:
    """An incremental job that has caught up."""
    job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=since_ms))
    return await c.until(job, lambda job: job.document["stats"]["success"] >= 1)


async def delisted(c: Collecting, *, since: int = 120, until: int = 30, **how: Any) -> Job:
    """A series that was followed and whose market has left; the job, frozen."""
    await refreshed(c)
    c.exchange.delist(SYMBOL, at_ms=minute(c, until), **how)
    job = await live(c, minute(c, since))
    await refreshed(c)
    return await c.queue.get(job.id)


async def test_a_delisted_symbol_is_frozen_where_its_bars_end(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        unfinished = await c.job(
            "ohlcv_backfill",
            cursor=Cursor(until_ms=minute(c, 200)),
            first_run_ms=LATER_MS,
        )
        with caplog.at_level(logging.WARNING):
            job = await delisted(c)
        assert "market_delisted" in caplog.text
        assert (job.status, job.state) == (Status.PAUSED, State.IDLE)
        assert job.document["waiting_for"] == "delisted"
        assert SYMBOL in job.document["stats"]["last_error"]
        backfill = await c.queue.get(unfinished.id)
        assert (backfill.status, backfill.document["waiting_for"]) == (Status.PAUSED, "delisted")
        start, end = minute(c, 121), minute(c, 0)
        stored = c.stored(start, end)
        assert stored
        assert stored == c.truth(stored[0][0], end)
        span = c.store.span(c.series)
        assert span is not None
        assert span.to_ms == stored[-1][0] + MINUTE, "the calendar ends with the last bar"
        assert c.store.covered(c.series)[-1].to_ms == span.to_ms
        document = await market(c)
        assert not document["active"]
        assert len(document["epochs"]) == 1
        asked = len(c.journal())
        await scanned(c)
        assert not await c.queue.find({"type": "gap_backfill"})
        assert len(c.journal()) == asked, "nobody asks for it any more"


async def test_bars_that_a_late_job_had_not_fetched_are_fetched_before_the_end(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await refreshed(c)
        job = await c.job(
            "ohlcv_incremental", cursor=Cursor(since_ms=minute(c, 120)), first_run_ms=LATER_MS
        )
        c.exchange.delist(SYMBOL, at_ms=minute(c, 30))
        await refreshed(c)
        assert (await c.queue.get(job.id)).document["waiting_for"] == "delisted"
        start = job.cursor.since_ms
        assert c.stored(0, minute(c, 0)) == c.truth(start, minute(c, 0))
        assert len(c.stored(0, minute(c, 0))) > 80


async def test_a_symbol_that_the_exchange_has_forgotten_leaves_no_failed_job_unexplained(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await refreshed(c)
        c.exchange.delist(SYMBOL, at_ms=minute(c, 30), hidden=True)
        job = await c.job("ohlcv_incremental", cursor=Cursor(since_ms=minute(c, 120)))
        await c.until(job, lambda job: job.state is State.FAILED)
        await refreshed(c)
        found = await c.queue.get(job.id)
        assert found.document["waiting_for"] == "delisted"
        assert found.document["stats"]["last_error"].startswith("delisted")


async def test_new_bars_of_a_market_that_was_gone_before_are_not_asked_for_for_ever(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        c.exchange.delist(SYMBOL, at_ms=minute(c, 300))
        await refreshed(c)
        job = await live(c, minute(c, 120))
        await refreshed(c)
        assert (await c.queue.get(job.id)).document["waiting_for"] == "delisted"


async def test_a_backfill_of_a_market_that_is_gone_ends_with_its_last_bar(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        last = c.first_ms + 100 * MINUTE
        c.exchange.delist(SYMBOL, at_ms=last)
        await refreshed(c)
        job = await c.backfill(minute(c, 10))
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.store.span(c.series) == Interval(c.first_ms, last)
        assert c.stored(0, minute(c, 0)) == c.truth(c.first_ms, last)


async def test_a_job_that_was_running_keeps_the_reason_when_its_worker_lets_go(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        job = await c.job("count", params={"steps": 10_000, "step_ms": 10})
        await c.until(job, lambda job: job.cursor.page > 0)
        await Freezing(database).freeze("simulated", SYMBOL, Frozen.DELISTED, "gone")
        found = await c.until(job, lambda job: job.state is State.IDLE)
        assert (found.status, found.document["waiting_for"]) == (Status.PAUSED, "delisted")
        thawed = await Freezing(database).thaw(job.id)
        assert thawed is not None
        page = found.cursor.page
        await c.until(job, lambda job: job.cursor.page > page)


async def test_an_operators_pause_is_not_lifted_by_a_relisting(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await refreshed(c)
        job = await live(c, minute(c, 20))
        await c.queue.pause(job.id)
        c.exchange.delist(SYMBOL, at_ms=minute(c, 10))
        await refreshed(c)
        c.exchange.relist(SYMBOL)
        await refreshed(c)
        found = await c.queue.get(job.id)
        assert (found.status, found.document["waiting_for"]) == (Status.PAUSED, None)


def only_what_was_asked_for(patch: pytest.MonkeyPatch) -> None:
    """Some venues answer for the window that was asked for and reach no further."""
    whole = CcxtExchange.fetch_bars

    async def windowed(self: CcxtExchange, *asked: Any) -> answer.Answer:
        page = await whole(self, *asked)
        rows = BarRows.of([row for row in page.rows if row[0] < page.question.to_ms])
        return replace(page, rows=rows, full=len(rows) >= page.question.limit)

    patch.setattr(CcxtExchange, "fetch_bars", windowed)


async def long_ago(c: Collecting, *, gone: int, looked: int) -> None:
    """As if it had been seen to be gone `gone` minutes ago, and again `looked` minutes ago."""
    await c.database.markets.update_many({}, {"$set": {"seen_at": minute(c, looked)}})
    await c.database.markets.update_one(
        {"symbol": SYMBOL},
        {"$set": {"delisted_at": minute(c, gone), "epochs.0.delisted": minute(c, gone)}},
    )


async def test_a_relisting_opens_an_epoch_and_the_time_between_is_settled(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_what_was_asked_for(monkeypatch)
    async with collecting(database, tmp_path, config=CONFIG) as c:
        frozen = await delisted(c, since=400, until=300)
        await long_ago(c, gone=290, looked=20)
        gone, back = minute(c, 289), minute(c, 20)
        before = len(c.journal())
        c.exchange.relist(SYMBOL, at_ms=minute(c, 12))
        await refreshed(c)
        runs = frozen.document["stats"]["success"]
        job = await c.until(frozen, lambda job: job.document["stats"]["success"] > runs)
        assert job.status is Status.ACTIVE
        assert job.document["waiting_for"] is None
        assert job.cursor.since_ms > back
        asked = [entry.start_ms for entry in c.journal()[before:]]
        # How far an incremental job looks back, and its second question for a row before.
        step = 2 * LOOK_BACK_BARS * MINUTE
        assert not [at for at in asked if gone <= at < back - step], "nobody asks for the time away"
        await scanned(c)
        (gap,) = await gap_jobs_at_rest(c)
        assert gap.cursor.since_ms < back, "before and after the time away it may have traded"
        assert gap.cursor.until_ms is not None
        await asked_again_after(c, gap, LATEST_MS)
        await no_more_gap_jobs(c)
        (covered,) = c.store.covered(c.series)
        assert covered.to_ms >= minute(c, 3)
        table = c.store.rows(c.series, covered.from_ms, covered.to_ms)
        assert set(table.column("gap_reason").to_pylist()) == {None, "no_trade"}
        stored = c.stored(covered.from_ms, covered.to_ms)
        assert stored == c.truth(covered.from_ms, covered.to_ms)
        assert stored[-1][0] > minute(c, 12)
        assert len((await market(c))["epochs"]) == 1


async def test_a_renamed_symbol_goes_on_under_its_new_name(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await refreshed(c)
        old = await live(c, minute(c, 60))
        waiting = await c.job(
            "ohlcv_backfill",
            cursor=Cursor(since_ms=minute(c, 90), until_ms=minute(c, 60)),
            first_run_ms=LATER_MS,
        )
        c.exchange.rename(SYMBOL, NEW)
        with caplog.at_level(logging.WARNING):
            done = await refreshed(c)
        assert "market_renamed" in caplog.text
        assert done.document["progress"]["renamed"] == [SYMBOL]
        for job_id in (old.id, waiting.id):
            job = await c.queue.get(job_id)
            assert (job.status, job.document["waiting_for"]) == (Status.PAUSED, "renamed")
            assert NEW in job.document["stats"]["last_error"]
        assert (await market(c))["renamed_to"] == NEW
        assert (await market(c, NEW))["renamed_from"] == SYMBOL
        (heir,) = await c.queue.find({"symbol": NEW, "type": "ohlcv_incremental"})
        (history,) = await c.queue.find({"symbol": NEW, "type": "ohlcv_backfill"})
        assert heir.cursor.since_ms >= old.cursor.since_ms - MINUTE
        await c.until(history, lambda job: job.state is State.SUCCESS)
        await c.until(heir, lambda job: job.document["stats"]["success"] >= 1)
        new_series = Series.of("simulated", NEW, "1m")
        assert c.stored(minute(c, 90), minute(c, 60), new_series) == c.truth(
            minute(c, 90), minute(c, 60)
        )
        stored = c.stored(minute(c, 60), minute(c, 0))
        assert stored == c.truth(minute(c, 60), stored[-1][0] + 1)
        old_bars = CandleReader(SYMBOL, "1m", "simulated", c.store).read()
        assert len(old_bars) >= len(stored)


class AnyTime:
    """A permit that always permits."""

    async def before(self, call: Call) -> float:
        return math.inf

    async def after(self, answer: Answer) -> None:
        pass


async def test_a_symbol_that_another_worker_heard_of_is_known_to_this_one(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, config=CONFIG) as c:
        await live(c, minute(c, 5))
        c.exchange.rename(SYMBOL, NEW)
        urls = {"simulated": c.exchange.url}
        other = CcxtExchange("simulated", AnyTime(), clock=SystemClock(), urls=urls)
        await MarketBook(database).save(await other.load_markets())
        await other.close()
        job = await c.job("ohlcv_incremental", symbol=NEW, cursor=Cursor(since_ms=minute(c, 5)))
        await c.until(job, lambda job: job.document["stats"]["success"] >= 1)
