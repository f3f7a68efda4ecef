"""Calendar months from a leased job to the reader, through real ccxt code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from collector.jobs.job import Cursor
from collector.jobs.states import State
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reader import CandleReader
from collector.reports.coverage import coverage
from collector.reports.expected import Expected
from collector.reports.validation import Demands, inspect
from collector.store.copies import Copies
from collector.store.store import Store
from tests.support.local_collector import SYMBOL, collecting

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

MONTH = Timeframe.parse("1M")
MONTHS = Series.of("simulated", SYMBOL, "1M")


async def test_months_are_collected_as_the_exchange_has_them(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, days=400) as c:
        until = MONTH.floor(database.server_clock.now_ms())
        job = await c.backfill(until, timeframe="1M")
        done = await c.until(job, lambda job: job.state is State.SUCCESS)
        assert done.cursor.since_ms == until
        wanted = c.truth(MONTH.floor(c.first_ms), until, frame="1M")
        assert 13 <= len(wanted) <= 15
        assert c.stored(0, until, MONTHS) == wanted
        assert (tmp_path / "simulated" / "BTC-USDT" / "1mo.parquet").is_file()
        assert c.store.series() == (MONTHS,)
        report = inspect(c.store, MONTHS, Demands(samples=0), Expected(None, until), now_ms=until)
        assert report.ok, report.document()
        assert (report.coverage.expected, report.coverage.missing) == (len(wanted), 0)
        assert report.coverage.lag_bars == 0
        later = Expected(None, MONTH.shift(until, 2))
        assert coverage(c.store, MONTHS, later).lag_bars == 2


async def test_new_months_follow_the_cursor(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, days=200) as c:
        until = MONTH.floor(database.server_clock.now_ms())
        since = MONTH.shift(until, -4)
        cursor = Cursor(since_ms=since)
        job = await c.job("ohlcv_incremental", timeframe="1M", cursor=cursor)
        done = await c.until(job, lambda job: job.cursor.since_ms >= until)
        assert done.cursor.since_ms == until
        assert done.next_run_at >= MONTH.next_open(until)
        assert c.stored(0, until, MONTHS) == c.truth(since, until, frame="1M")


async def test_a_gap_of_months_is_found_and_filled(database: Database, tmp_path: Path) -> None:
    async with collecting(database, tmp_path, days=400) as c:
        until = MONTH.floor(database.server_clock.now_ms())
        pieces = [(MONTH.shift(until, -9), MONTH.shift(until, -6)), (MONTH.shift(until, -3), until)]
        for since, end in pieces:
            job = await c.job("gap_backfill", timeframe="1M", cursor=Cursor(since, end))
            await c.until(job, lambda job: job.state is State.SUCCESS)
        report = inspect(c.store, MONTHS, Demands(samples=0), Expected(None, until), now_ms=until)
        # Pages are as long as the shortest months would be, so one may bring a month more.
        assert report.coverage.expected == 9
        assert 2 <= report.coverage.missing <= 3
        assert [run.to_ms for run in report.coverage.worst] == [pieces[1][0]]
        job = await c.job("gap_backfill", timeframe="1M", cursor=Cursor(pieces[0][1], pieces[1][0]))
        await c.until(job, lambda job: job.state is State.SUCCESS)
        assert c.stored(0, until, MONTHS) == c.truth(pieces[0][0], until, frame="1M")


async def test_months_made_of_minutes_equal_those_of_the_exchange(
    database: Database, tmp_path: Path
) -> None:
    async with collecting(database, tmp_path, days=70) as c:
        job = await c.backfill(until := MONTH.floor(database.server_clock.now_ms()))
        await c.until(job, lambda job: job.state is State.SUCCESS)
        first = MONTH.ceil(c.first_ms)
        reader = CandleReader(SYMBOL, "1M", "simulated", c.store)
        read = reader.arrow(first, until)
        wanted = c.truth(first, until, frame="1M")
        assert read["ts"].to_pylist() == [row[0] for row in wanted]
        assert read["c"].to_pylist() == [row[4] for row in wanted]
        copying = Store(tmp_path, copies=Copies((MONTH,)))
        copying.resample(c.series, [MONTH])
        plain = pq.read_table(tmp_path / "simulated" / "BTC-USDT" / "1mo.parquet")
        assert plain["ts"].to_pylist() == [row[0] for row in wanted]
        assert CandleReader(SYMBOL, "1M", "simulated", copying).arrow(first, until).equals(read)
