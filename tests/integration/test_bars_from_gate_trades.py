"""Gate's history before its 10,000 bars: trades that come newest first, made into bars.

Through ccxt's own class, at a local venue that tells a tape of trades as Gate does.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.errors import ExchangeUnavailable
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.market.series import Series
from collector.market.trade import Trade
from collector.store.store import Store
from collector.store.trades import read_trades
from tests.support.ccxt_venue import Venue, serving
from tests.support.gate_tape import KEPT_MS, Tape, playing
from tests.support.until import until_job
from workers.all_handlers import all_handlers
from workers.job_run import JobRun
from workers.runtime import Worker, WorkerConfig
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from collector.mongo.client import Database

CONFIG = WorkerConfig("ann", poll_seconds=0.2, retry=Backoff(0.05, 0.2))
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
SYMBOL = "BTC/USDT"
QUIET, BUSY, FULL = 17, 40, 75
"""Minutes of the tape: without a trade, with many, and with more in a second than an answer has."""


@dataclass(frozen=True)
class Gate:
    """What a test holds in its hands."""

    venue: Venue
    tape: Tape
    store: Store
    queue: JobQueue
    series: Series

    async def job(self, kind: str, cursor: Cursor, **fields: Any) -> Job:
        named = {"symbol": SYMBOL, "timeframe": "1m", **fields}
        return (await self.queue.add(JobSpec("gate", kind, cursor=cursor, **named)))[0]

    async def until(self, job: Job, satisfied: Callable[[Job], bool]) -> Job:
        return await until_job(self.queue, job, satisfied)

    async def made(self, since_ms: int, until_ms: int, page: int = 0, **fields: Any) -> Job:
        cursor = Cursor(since_ms=since_ms, until_ms=until_ms, page=page)
        job = await self.job("ohlcv_from_trades", cursor, **fields)
        return await self.until(job, lambda job: job.state is State.SUCCESS)

    def rows(self, from_ms: int, to_ms: int) -> list[dict[str, Any]]:
        return self.store.rows(self.series, from_ms, to_ms).to_pylist()

    def asked(self) -> list[Any]:
        return [each.query for each in self.venue.requests if each.path.endswith("/spot/trades")]

    def assert_true(self, from_ms: int, to_ms: int) -> None:
        """The bars of the lake are those of the tape."""
        bars = [row for row in self.rows(from_ms, to_ms) if not row["is_gap"]]
        truth = self.tape.bars(from_ms, to_ms)
        exact = [tuple(row[name] for name in ("ts", "o", "h", "l", "c")) for row in bars]
        assert exact == [bar[:5] for bar in truth]
        for at, name in ((5, "v"), (6, "t")):
            assert [row[name] for row in bars] == pytest.approx([bar[at] for bar in truth])


@asynccontextmanager
async def at_gate(database: Database, root: Path, tape: Tape) -> AsyncIterator[Gate]:
    """A worker at work at a Gate that has this tape."""
    await ConnectorRegistry(database).ensure("gate", Limits(10_000, 1_000))
    venue, store, clock = Venue("gate"), Store(root), SystemClock()
    venue.always = playing(venue, tape, clock)
    async with (
        serving(venue) as address,
        Limiter(database) as limiter,
        Venues(
            database, limiter, store, urls={"gate": address}, patience=0.25, clock=clock
        ) as venues,
    ):
        handlers = all_handlers(venues, store, database)
        worker = Worker(database, limiter, handlers, CONFIG)
        running = asyncio.create_task(worker.run())
        try:
            series = Series.of("gate", SYMBOL, "1m")
            yield Gate(venue, tape, store, JobQueue(database), series)
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


def minutes(first_ms: int, count: int) -> Tape:
    """A tape of so many minutes, three trades in most of them."""
    rng, times = random.Random(4), []
    many = {QUIET: 0, BUSY: 2_500}
    for minute in range(count):
        open_ms = first_ms + minute * MINUTE
        times += [open_ms + rng.randrange(MINUTE) for _ in range(many.get(minute, 3))]
        times += [open_ms + 30_000 + rng.randrange(1000) for _ in range(2_300)] * (minute == FULL)
    prices = [round(100 + rng.random() * 9, 2) for _ in times]
    sizes = [round(rng.random(), 4) for _ in times]
    told = zip(sorted(times), prices, sizes, strict=True)
    return Tape(tuple(Trade(str(5_000 + n), *each, "buy") for n, each in enumerate(told)))


def recent(ago_ms: int) -> int:
    now_ms = SystemClock().wall_ms()
    return now_ms - now_ms % MINUTE - ago_ms


async def test_made_bars_equal_the_tape_and_end_where_gates_own_begin(
    database: Database, tmp_path: Path
) -> None:
    border = recent(9_000 * MINUTE)
    first, end = border - 100 * MINUTE, border + 20 * MINUTE
    async with at_gate(database, tmp_path, minutes(first, 120)) as gate:
        told = await gate.job("gap_backfill", Cursor(since_ms=border, until_ms=end))
        await gate.until(told, lambda job: job.status is Status.DELETED)
        done = await gate.made(0, recent(0))
        assert (done.status, done.cursor.done) == (Status.PAUSED, True)
        assert done.cursor.since_ms == border
        gate.assert_true(first, end)
        made = [row for row in gate.rows(first, border) if not row["is_gap"]]
        assert {row["source"] for row in made} == {"gate:trades"}
        assert {row["source"] for row in gate.rows(border, end)} == {"gate"}
        (quiet,) = gate.rows(first + QUIET * MINUTE, first + (QUIET + 1) * MINUTE)
        assert quiet["gap_reason"] == "no_trade"
        assert not [row for row in gate.rows(0, first) if not row["is_gap"]]
        assert any(query.get("page") == "2" for query in gate.asked())
        assert len(gate.asked()) < 60


async def test_a_run_that_ends_between_its_write_and_its_commit_changes_nothing(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recent(9_000 * MINUTE)
    commit, ended = JobRun.commit, []

    async def ends_once(run: JobRun, cursor: Cursor, **told: Any) -> None:
        if told.get("bars") and not ended:
            ended.append(cursor)
            raise ExchangeUnavailable("it ends here")
        await commit(run, cursor, **told)

    monkeypatch.setattr(JobRun, "commit", ends_once)
    async with at_gate(database, tmp_path, minutes(first, 120)) as gate:
        await gate.made(0, first + 120 * MINUTE)
        assert ended
        gate.assert_true(first, first + 120 * MINUTE)
        rows = gate.rows(first, first + 120 * MINUTE)
        assert {row["ver"] for row in rows if not row["is_gap"]} == {1}


@pytest.mark.parametrize("timeframe", ["1m", "1h"])
async def test_bars_begin_with_the_first_one_whose_trades_are_all_kept(
    database: Database, tmp_path: Path, timeframe: str
) -> None:
    kept = recent(KEPT_MS) // HOUR * HOUR
    series, until = Series.of("gate", SYMBOL, timeframe), kept + 6 * HOUR
    async with at_gate(database, tmp_path, minutes(kept - 2 * HOUR, 8 * 60)) as gate:
        await gate.made(0, until, timeframe=timeframe)
        table = gate.store.rows(series, 0, until)
        begun = table.column("ts")[0].as_py()
        assert kept < begun <= kept + 4 * HOUR
        truth = gate.tape.bars(begun, until, series.timeframe.ms)
        bars = [row for row in table.to_pylist() if not row["is_gap"]]
        assert [(row["ts"], row["o"], row["h"]) for row in bars] == [bar[:3] for bar in truth]


async def test_what_gate_gave_up_meanwhile_is_left_out_and_said(
    database: Database, tmp_path: Path
) -> None:
    kept = recent(KEPT_MS)
    since, until = kept - DAY, kept + 4 * HOUR
    async with at_gate(database, tmp_path, minutes(kept - 2 * HOUR, 6 * 60)) as gate:
        done = await gate.made(since, until, page=1)
        ((lost, told),) = done.document["progress"]["missed"]
        assert lost == since
        assert kept < told < kept + 2 * HOUR
        assert gate.rows(0, until)[0]["ts"] == told
        gate.assert_true(told, until)


async def test_a_bar_of_more_pages_than_a_write_is_made_all_the_same(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.handlers.from_trades.PAGES_A_WRITE", 1)
    first = recent(0) // HOUR * HOUR - 150 * HOUR
    async with at_gate(database, tmp_path, minutes(first, 120)) as gate:
        await gate.made(0, first + 2 * HOUR, timeframe="1h")
        hours = gate.store.rows(Series.of("gate", SYMBOL, "1h"), first, first + 2 * HOUR)
        truth = gate.tape.bars(first, first + 2 * HOUR, HOUR)
        assert hours.column("c").to_pylist() == [bar[4] for bar in truth]
        assert hours.column("v").to_pylist() == pytest.approx([bar[5] for bar in truth])


async def test_every_trade_is_in_the_lake_once(database: Database, tmp_path: Path) -> None:
    first = recent(2 * HOUR)
    async with at_gate(database, tmp_path, minutes(first, 110)) as gate:
        cursor = Cursor(since_ms=first)
        job = await gate.job("trades_incremental", cursor, timeframe=None)
        await gate.until(job, lambda job: job.document["stats"]["success"] > 0)
        table = read_trades(gate.store.storage, "gate", SYMBOL, 0, recent(0))
        kept = [Trade(*each) for each in zip(*_columns(table), strict=True)]
        assert kept == list(gate.tape.trades)


def _columns(table: Any) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in ("id", "ts", "price", "amount", "side")]


async def test_contracts_have_no_history_of_trades(database: Database, tmp_path: Path) -> None:
    async with at_gate(database, tmp_path, Tape(())) as gate:
        cursor = Cursor(since_ms=0, until_ms=recent(0))
        job = await gate.job("ohlcv_from_trades", cursor, symbol="BTC/USDT:USDT")
        failed = await gate.until(job, lambda job: bool(job.document["stats"]["last_error"]))
        assert "newest trades" in failed.document["stats"]["last_error"]
        assert not gate.asked()
