"""From a job to bars on disk at every venue: worker, limiter and lake, through ccxt's own class."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from collector.backoff import Backoff
from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.port import Markets
from collector.jobs import fetching
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.interval import Interval
from collector.market.series import Series
from collector.markets.book import MarketBook
from collector.store.store import Store
from tests.contract.any_exchange import SPOT_MARKET, made_up
from tests.support.ccxt_venue import MINUTE, Venue, says, serving
from tests.support.dialects import DIALECTS, Dialect
from tests.support.dialects.dialect import bar_at, dated
from tests.support.until import until_job
from workers.all_handlers import all_handlers
from workers.runtime import Worker, WorkerConfig
from workers.tries import Tries
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiohttp import web

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.ccxt_venue import Turn

STEP = MINUTE.ms
AGE_BARS = 650
"""Every venue still has that many."""
AT_ONCE, QUICK = Backoff(0.02, 0.02), Tries(base_seconds=0.01)
"""How long a job waits between its runs is not what these tests are about."""


Shape = Callable[[list[Any], int], Any]
"""From the bars that a venue would send, and how many requests came, to those it sends."""


def as_they_are(bars: list[Any], _count: int) -> Any:
    return bars


def newest(most: int) -> Shape:
    """Of too many bars the oldest are left out."""
    return lambda bars, _count: bars[-most:]


def oldest(most: int) -> Shape:
    return lambda bars, _count: bars[:most]


def in_turns(*bodies: Any) -> Shape:
    """Every other answer is none at all."""
    return lambda bars, count: bodies[count // 2 % len(bodies)] if count % 2 else bars


def at_first(wrong: Callable[[Any, Any], Any]) -> Shape:
    """The last bar of a page is made of the one before it, until it is asked for once more."""
    sent: set[int] = set()

    def shape(bars: list[Any], _count: int) -> Any:
        if len(bars) < 100 or bars[-1][0] in sent:
            return bars
        sent.add(bars[-1][0])
        return [*bars[:-1], wrong(bars[-2], bars[-1])]

    return shape


def repeated(before: Any, bar: Any) -> Any:
    return (bar[0], *before[1:])


def of_nothing(_before: Any, bar: Any) -> Any:
    return (bar[0], 0, 0, 0, 0, 43, 0)


def from_elsewhere(_before: Any, bar: Any) -> Any:
    return (bar[0], *(100 * value for value in bar[1:5]), *bar[5:])


ERRORS = (
    {"rc": 0, "mc": "SUCCESS", "ma": [], "result": None},
    {"code": 99999, "data": []},
    {"code": "99999", "msg": "busy", "data": []},
)
SHAPES: dict[str, tuple[str, Shape]] = {
    "okx gives 100 of 300": ("okx", newest(100)),
    "the newest 440 are kept": ("bybit", newest(440)),
    "the newest 500 are kept": ("kucoin", newest(500)),
    "the newest 90 are kept": ("coinbase", newest(90)),
    "the oldest 100 are kept": ("bybit", oldest(100)),
    "the oldest 60 are kept": ("binance", oldest(60)),
    "the last row repeats the one before": ("bybit", at_first(repeated)),
    "prices of zero": ("kucoin", at_first(of_nothing)),
    "a price from elsewhere": ("okx", at_first(from_elsewhere)),
    "errors with an empty list, okx": ("okx", in_turns(*ERRORS)),
    "errors with an empty list, bitget": ("bitget", in_turns(*ERRORS)),
    "errors with an empty list, bybit": ("bybit", in_turns(*ERRORS)),
}


def trading(venue: Venue, dialect: Dialect, first_ms: int, shape: Shape = as_they_are) -> Turn:
    """Markets as recorded, and bars up to now."""
    count = itertools.count()

    async def turn(request: web.Request) -> web.StreamResponse:
        now_ms = SystemClock().wall_ms()
        if dialect.recording_for(request) != dialect.bars_file:
            body = venue.recorded(request)
        else:
            body = shape(dialect.answer(request, first_ms, now_ms), next(count))
            body = dialect.page(body) if isinstance(body, list) else body
        return await says(200, body, headers=dated(now_ms))(request)

    return turn


async def finished(queue: JobQueue, job: Job) -> Job:
    return await _without_failing(queue, job, lambda found: found.state is State.SUCCESS)


async def has_run(queue: JobQueue, job: Job) -> Job:
    return await _without_failing(queue, job, lambda found: found.document["stats"]["success"])


async def _without_failing(queue: JobQueue, job: Job, satisfied: Callable[[Job], object]) -> Job:
    def so_far(found: Job) -> object:
        assert found.state is not State.FAILED, found.document["stats"]
        return satisfied(found)

    return await until_job(queue, job, so_far)


@asynccontextmanager
async def collecting(
    database: Database, root: Path, exchange_id: str, turn: Callable[[Venue], Turn]
) -> AsyncIterator[tuple[JobQueue, Store]]:
    """A worker at a local venue."""
    await ConnectorRegistry(database).ensure(exchange_id, Limits(10_000, 1_000))
    venue, store = Venue(exchange_id), Store(root)
    venue.always = turn(venue)
    async with (
        serving(venue) as address,
        Limiter(database) as limiter,
        Venues(
            database,
            limiter,
            store,
            urls={exchange_id: address},
            patience=0.25,
            clock=SystemClock(),
        ) as venues,
    ):
        handlers = all_handlers(venues, store, database)
        config = WorkerConfig("ann", poll_seconds=0.5, retry=AT_ONCE, tries=QUICK)
        worker = Worker(database, limiter, handlers, config)
        running = asyncio.create_task(worker.run())
        try:
            yield JobQueue(database), store
        finally:
            worker.drain()
            await asyncio.wait_for(running, 120)


def rows_of(store: Store, series: Series, until_ms: int) -> list[Any]:
    table = store.rows(series, 0, until_ms)
    columns = [table.column(name).to_pylist() for name in ("ts", "o", "h", "l", "c", "v", "is_gap")]
    return list(zip(*columns, strict=True))


def truth(first_ms: int, until_ms: int) -> list[Any]:
    return [(*bar_at(ts)[:6], False) for ts in range(first_ms, until_ms, STEP)]


async def backfilled(
    dialect: Dialect, database: Database, root: Path, shape: Shape
) -> tuple[list[Any], list[Any]]:
    """What a whole backfill stores, and the truth."""
    first_ms = MINUTE.floor(SystemClock().wall_ms()) - AGE_BARS * STEP
    until_ms = first_ms + (AGE_BARS - 20) * STEP
    exchange_id, symbol = dialect.exchange_id, dialect.symbol
    spec = JobSpec(
        exchange_id,
        "ohlcv_backfill",
        symbol=symbol,
        timeframe="1m",
        cursor=Cursor(until_ms=until_ms),
    )
    at_venue = collecting(
        database, root, exchange_id, lambda venue: trading(venue, dialect, first_ms, shape)
    )
    async with at_venue as (queue, store):
        done = await finished(queue, (await queue.add(spec))[0])
        assert done.cursor.since_ms == until_ms
        assert not await queue.find({"type": "gap_backfill"}), "nothing is left open"
    series = Series.of(exchange_id, symbol, "1m")
    return rows_of(store, series, until_ms), truth(first_ms, until_ms)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
async def test_a_backfill_ends_with_the_venues_bars_in_the_lake(
    dialect: Dialect, database: Database, tmp_path: Path
) -> None:
    stored, expected = await backfilled(dialect, database, tmp_path, as_they_are)
    assert stored == expected


@pytest.mark.parametrize("name", SHAPES)
async def test_whatever_a_venue_leaves_out_a_backfill_ends_with_all_of_it(
    name: str, database: Database, tmp_path: Path
) -> None:
    exchange_id, shape = SHAPES[name]
    stored, expected = await backfilled(DIALECTS[exchange_id], database, tmp_path, shape)
    assert stored == expected


async def test_a_venue_that_ignores_since_gives_what_it_has_and_nothing_is_called_empty(
    database: Database, tmp_path: Path
) -> None:
    """Gemini's way: the last 1,441 minutes, whatever was asked for."""
    frames = {"1m": 60_000, "1hr": 3_600_000, "1day": 86_400_000}
    first_ms = MINUTE.floor(SystemClock().wall_ms()) - 3_000 * STEP

    async def turn(request: web.Request) -> web.StreamResponse:
        now_ms, step = SystemClock().wall_ms(), frames[request.path.rsplit("/", 1)[-1]]
        last_ms = now_ms - now_ms % step
        opens = [last_ms - at * step for at in range(1441) if last_ms - at * step >= first_ms]
        rows = [list(bar_at(ts)[:6]) for ts in opens]
        return await says(200, rows, headers=dated(now_ms))(request)

    market, frame_names = made_up(SPOT_MARKET), ("1m", "1h", "1d")
    await MarketBook(database).save(Markets("gemini", (market,), frame_names))
    series = Series.of("gemini", market.symbol, "1m")
    until_ms = MINUTE.floor(SystemClock().wall_ms()) - 20 * STEP
    away = JobSpec(
        "gemini",
        "ohlcv_incremental",
        symbol=market.symbol,
        timeframe="1m",
        cursor=Cursor(since_ms=first_ms, last_ts=first_ms - STEP, page=1),
    )
    past = replace(away, type="ohlcv_backfill", cursor=Cursor(until_ms=until_ms))
    async with collecting(database, tmp_path, "gemini", lambda _: turn) as (queue, store):
        await finished(queue, (await queue.add(past))[0])
        (live, _) = await queue.add(away)
        found = await has_run(queue, live)
    stored = rows_of(store, series, until_ms)
    horizon_ms = stored[0][0]
    assert MINUTE.floor(SystemClock().wall_ms()) - horizon_ms <= 1441 * STEP
    assert stored == truth(horizon_ms, until_ms)
    [(from_ms, to_ms)] = found.document["progress"]["missed"]
    assert from_ms == first_ms
    assert to_ms >= horizon_ms


@pytest.mark.parametrize(("exchange_id", "kept"), [("kraken", 720), ("gate", 9_900)])
async def test_a_job_that_was_away_for_too_long_goes_on_from_the_oldest_bar_there_is(
    exchange_id: str, kept: int, database: Database, tmp_path: Path
) -> None:
    """Kraken after a day, Gate after a week: the stretch is missing, with the reason."""
    dialect = DIALECTS[exchange_id]
    now_ms = MINUTE.floor(SystemClock().wall_ms())
    since_ms, gone_ms = now_ms - (kept + 800) * STEP, now_ms - (kept - 1) * STEP
    away = JobSpec(
        exchange_id,
        "ohlcv_incremental",
        symbol=dialect.symbol,
        timeframe="1m",
        cursor=Cursor(since_ms=since_ms, last_ts=since_ms - STEP, page=1),
    )
    lost = replace(away, type="gap_backfill", cursor=Cursor(since_ms, gone_ms - 20 * STEP))
    at_venue = collecting(
        database, tmp_path, exchange_id, lambda venue: trading(venue, dialect, since_ms - 50 * STEP)
    )
    async with at_venue as (queue, store):
        (live, _) = await queue.add(away)
        found = await has_run(queue, live)
        gap = await finished(queue, (await queue.add(lost))[0])
    [(from_ms, to_ms)] = found.document["progress"]["missed"]
    assert from_ms == since_ms
    assert gone_ms <= to_ms <= gone_ms + 2 * STEP
    assert found.cursor.since_ms >= now_ms - STEP
    assert rows_of(store, Series.of(exchange_id, dialect.symbol, "1m"), now_ms - STEP) == truth(
        to_ms, now_ms - STEP
    )
    (stretch,) = gap.document["progress"]["not_served"]
    assert stretch == [since_ms, gone_ms - 20 * STEP]
    owned = await fetching.owned(
        database, exchange_id, [Series.of(exchange_id, dialect.symbol, "1m")]
    )
    assert list(owned.values()) == [[Interval(*stretch)]], "and nobody makes another job of it"
