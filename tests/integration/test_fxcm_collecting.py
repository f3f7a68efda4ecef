"""FXCM through jobs to the lake, with the stand-in SDK in real sidecar processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.clock import SystemClock
from collector.jobs.job import Cursor
from collector.jobs.lag import reached
from collector.jobs.states import State
from collector.market.calendar.fx import FX
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.pipeline.resample import resample
from tests.support.fxcm.collecting import (
    COLUMNS,
    DAY,
    FIRST_MS,
    HOUR,
    FxcmCollecting,
    stored_bars,
    true_bars,
)
from tests.support.until import until

if TYPE_CHECKING:
    from collector.jobs.job import Job

MINUTE = 60_000
EURUSD = Series.of("fxcm", "EUR/USD", "1m")
# Monday of the week in which New York has changed its clocks, and the Friday before, at noon there.
MONDAY_MS = FIRST_MS + 10 * DAY + 16 * HOUR
FRIDAY_MS = FIRST_MS + 7 * DAY + 17 * HOUR


def is_done(job: Job) -> bool:
    return job.state is State.SUCCESS


def put(fx: FxcmCollecting, from_ms: int, to_ms: int) -> None:
    """Bars as an earlier run left them."""
    rows = true_bars("EUR/USD", "m1", from_ms, to_ms)
    batch = CandleBatch.of([row[:6] for row in rows])
    columns = list(zip(*rows, strict=True))[6:]
    batch = batch.with_extra(dict(zip(COLUMNS[6:], columns, strict=True)))  # type: ignore[arg-type]
    fx.store.append_page(EURUSD, batch, Interval(from_ms, to_ms), fence=1, known_at=1)


def reasons(fx: FxcmCollecting, from_ms: int, to_ms: int) -> set[Any]:
    return set(fx.store.rows(EURUSD, from_ms, to_ms)["gap_reason"].to_pylist())


async def scanned(fx: FxcmCollecting) -> None:
    """All gaps were looked for, whatever their age, and the jobs made for them are gone."""
    [scan] = await fx.queue.find({"type": "full_scan"})
    runs = scan.document["stats"]["success"]
    await fx.queue.run(scan.id)
    await fx.until(scan, lambda job: job.document["stats"]["success"] > runs)

    async def none_is_left() -> bool:
        wanted = {"type": "gap_backfill", "status": {"$ne": "deleted"}}
        return not await fx.database.jobs.find(wanted)

    await until(none_is_left, "no gap job is left")


async def test_history_over_a_clock_change_is_stored_as_it_was(fx: FxcmCollecting) -> None:
    start, end = FIRST_MS + 6 * DAY, FIRST_MS + 13 * DAY
    async with fx.worker():
        job = await fx.backfill(start, end)
        await fx.until(job, is_done)
    assert stored_bars(fx.store, EURUSD, start, end) == true_bars("EUR/USD", "m1", start, end)
    assert reasons(fx, start, end) == {None}
    assert (fx.server.count("login"), fx.server.second_logins) == (1, 0)


async def test_a_backfill_from_a_given_time_begins_there_and_searches_nothing(
    fx: FxcmCollecting,
) -> None:
    start, end = FRIDAY_MS, FRIDAY_MS + HOUR
    async with fx.worker():
        job = await fx.backfill(start, end)
        await fx.until(job, is_done)
    assert stored_bars(fx.store, EURUSD, start, end) == true_bars("EUR/USD", "m1", start, end)
    assert fx.server.count("history") == 2, "a look at what lies before, and the hour itself"


async def test_a_backfill_from_before_the_first_bar_searches_for_it(fx: FxcmCollecting) -> None:
    start, end = FIRST_MS - HOUR, FIRST_MS + HOUR
    async with fx.worker():
        job = await fx.backfill(start, end)
        done = await fx.until(job, is_done)
    assert stored_bars(fx.store, EURUSD, start, end) == true_bars("EUR/USD", "m1", FIRST_MS, end)
    assert done.document["progress"]["from_ms"] == FIRST_MS
    assert fx.server.count("history") > 2


async def test_a_hole_over_a_weekend_is_filled_and_the_weekend_is_no_gap(
    fx: FxcmCollecting,
) -> None:
    put(fx, FRIDAY_MS, FRIDAY_MS + HOUR)
    put(fx, MONDAY_MS, MONDAY_MS + HOUR)
    async with fx.worker():
        await scanned(fx)
        asked = fx.server.count("history")
        await scanned(fx)
        assert fx.server.count("history") == asked  # There is nothing left to ask for.
    end = MONDAY_MS + HOUR
    assert stored_bars(fx.store, EURUSD, FRIDAY_MS, end) == true_bars(
        "EUR/USD", "m1", FRIDAY_MS, end
    )
    assert reasons(fx, FRIDAY_MS, end) == {None}


async def test_closed_time_alone_costs_no_call(fx: FxcmCollecting) -> None:
    saturday = Cursor(since_ms=FIRST_MS + 8 * DAY, until_ms=FIRST_MS + 9 * DAY)
    async with fx.worker():
        job = await fx.job("gap_backfill", cursor=saturday)

        async def it_is_gone() -> bool:
            return not await fx.database.jobs.find({"_id": job.id, "status": {"$ne": "deleted"}})

        await until(it_is_gone, "the job has nothing to do")
    assert not fx.server.count("history")


async def test_new_bars_are_followed_and_the_next_run_waits_for_the_market(
    fx: FxcmCollecting,
) -> None:
    frame = EURUSD.timeframe
    start = frame.shift(SystemClock().wall_ms(), -90)
    fx.server.change(first_ms=start)
    async with fx.worker():
        job = await fx.job("ohlcv_incremental", cursor=Cursor(since_ms=start))
        job = await fx.until(job, lambda found: found.document["stats"]["success"] > 0)
    assert job.cursor.since_ms > start + 80 * MINUTE
    end = job.cursor.since_ms
    assert stored_bars(fx.store, EURUSD, start, end) == true_bars("EUR/USD", "m1", start, end)
    [lag] = await reached(fx.database)
    # Over a weekend, too: closed time has no bars to be behind with.
    assert frame.count(lag.since_ms, frame.floor(fx.database.server_clock.now_ms())) <= 3
    # In the minute before it there is trading, which on a weekend is the first one of the week.
    assert FX.is_open(job.document["next_run_at"] - MINUTE)


async def test_five_minutes_of_fxcm_are_five_minutes_of_its_minutes(fx: FxcmCollecting) -> None:
    start, end = FRIDAY_MS, MONDAY_MS
    five = Series.of("fxcm", "EUR/USD", "5m")
    async with fx.worker():
        jobs = [await fx.backfill(start, end, "EUR/USD", frame) for frame in ("1m", "5m")]
        for job in jobs:
            await fx.until(job, is_done)
    columns = (*COLUMNS, "is_gap", "t", "gap_reason", "ver", "source")
    minutes = fx.store.rows(EURUSD, start, end, columns=columns)
    batch = CandleBatch.from_arrow(minutes, COLUMNS[6:])
    made = resample(batch, EURUSD.timeframe, five.timeframe)
    resampled = [
        tuple(row)
        for row in zip(
            *(made.ts, made.o, made.h, made.l, made.c, made.v),
            *(made.column(name) for name in COLUMNS[6:]),
            strict=True,
        )
    ]
    own = stored_bars(fx.store, five, start, end)
    assert own == true_bars("EUR/USD", "m5", start, end)
    assert own == resampled
