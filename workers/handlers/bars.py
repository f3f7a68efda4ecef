"""One page of bars: asked for, made ready, durable. Shared by every job that fetches bars."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from collector.errors import BadRequest
from collector.market.interval import Interval, runs, subtract
from collector.market.series import Series
from collector.pipeline.prepare import Prepared, prepare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.exchanges.port import BarPage
    from collector.jobs.job import Job
    from collector.market.candles import CandleBatch
    from collector.pipeline.normalize import Row
    from workers.venues import Venue

FEW_ROWS = 100
LIVE_EDGE_BARS = 3
"""An empty slot this close to now may be a bar that the venue has not made up yet."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What the venue said about a stretch, judged and ready to be stored."""

    series: Series
    since_ms: int
    now_ms: int
    prepared: Prepared

    @property
    def bars(self) -> int:
        return len(self.prepared.batch)

    @property
    def last_ts(self) -> int:
        return int(self.prepared.batch.ts[-1]) if self.bars else 0

    @property
    def covered(self) -> tuple[Interval, ...]:
        """The slots it settles, less empty ones at its end that are too young to be believed."""
        frame = self.series.timeframe
        last_bar_end = self.last_ts + frame.ms if self.bars else 0
        limit = max(last_bar_end, frame.floor(self.now_ms) - LIVE_EDGE_BARS * frame.ms)
        return tuple(
            Interval(each.from_ms, min(each.to_ms, limit))
            for each in self.prepared.covered
            if each.from_ms < limit
        )

    def without(self, known: CandleBatch) -> Answer:
        """Less the bars that are in `known` with the same values, and what they settle."""
        batch = self.prepared.batch
        same = np.zeros(len(batch), dtype=np.bool_)
        at = np.searchsorted(known.ts, batch.ts)
        held = at < len(known)
        held[held] = known.ts[at[held]] == batch.ts[held]
        same[held] = True
        for ours, theirs in zip(batch.values(), known.values(), strict=True):
            mine, other = ours[held], theirs[at[held]]
            same[held] &= (mine == other) | ((mine != mine) & (other != other))
        if not same.any():
            return self
        slots = runs(batch.ts[same], self.series.timeframe.ms)
        rest = replace(
            self.prepared,
            batch=batch.take(~same),
            covered=subtract(self.prepared.covered, slots),
        )
        return replace(self, prepared=rest)

    @property
    def to_ms(self) -> int:
        """Where the job may go on: behind what is settled, and behind bars that were refused.

        A refused bar's slot stays missing, for a gap job to own; it must not hold up this one.
        """
        frame = self.series.timeframe
        refused = [frame.next_open(r.ts) for r in self.prepared.rejected if r.ts is not None]
        ends = [each.to_ms for each in self.covered] + [ms for ms in refused if ms <= self.now_ms]
        return max([self.since_ms, *ends])


def series_of(job: Job) -> Series:
    """The series a job is about. Raises BadRequest when the job names none."""
    if not job.symbol or not job.timeframe:
        raise BadRequest(f"a {job.type} job needs a symbol and a timeframe")
    try:
        return Series.of(job.exchange_id, job.symbol, job.timeframe)
    except ValueError as error:
        raise BadRequest(str(error)) from error


async def ask(
    venue: Venue, series: Series, since_ms: int, limit: int, *, settled_ms: int = 0
) -> Answer:
    """The bars from `since_ms` on, at most `limit`. What lies before `settled_ms` was settled once.

    A page with holes or bad rows is asked for once more, and both answers count together: some
    venues answer short when they are busy, and a slot is empty only when nobody had a bar for it.
    """
    page = await venue.exchange.fetch_bars(series.symbol, series.timeframe, since_ms, limit)
    now_ms = await _venue_now(venue, page)
    prepared = await _prepared([page], series, now_ms)
    if _doubtful(prepared, series, settled_ms):
        again = await venue.exchange.fetch_bars(series.symbol, series.timeframe, since_ms, limit)
        prepared = await _prepared([page, again], series, now_ms)
    return Answer(series, since_ms, now_ms, prepared)


async def keep(venue: Venue, answer: Answer, *, fence: int) -> None:
    """Returns when everything the answer said is durable."""
    known_at = venue.server_clock.now_ms()
    series, prepared = answer.series, answer.prepared
    if prepared.rejected:
        await asyncio.to_thread(
            venue.store.quarantine, series, prepared.rejected, fence=fence, known_at=known_at
        )
    await venue.commit.add(series, prepared.batch, answer.covered, fence=fence, known_at=known_at)


async def _venue_now(venue: Venue, page: BarPage) -> int:
    if page.server_ms is not None:
        return page.server_ms
    await venue.clock.keep_fresh(venue.exchange)
    return venue.clock.now_ms()


async def _prepared(pages: Sequence[BarPage], series: Series, now_ms: int) -> Prepared:
    """Large pages in a thread: a loop that is busy for long spends its tokens late."""
    if sum(len(page.rows) for page in pages) < FEW_ROWS:
        return _prepare(pages, series, now_ms)
    return await asyncio.to_thread(_prepare, pages, series, now_ms)


def _prepare(pages: Sequence[BarPage], series: Series, now_ms: int) -> Prepared:
    """Both answers as one; the later row of a slot wins.

    The venue's own word is taken for as much as it clearly says. Where every row is a good bar,
    an answer reaches to its last row, beyond what was asked if the venue skipped empty slots.
    Where any row is bad its times cannot be trusted that far, and the answer ends with the window
    that was asked for; the rows behind it are the next page's.
    """
    rows: list[Row] = [row for page in pages for row in page.rows]
    step = series.timeframe.ms
    reach = Interval(pages[0].asked_from_ms, min(_reach(page, step) for page in pages))
    prepared = prepare(rows, timeframe=series.timeframe, asked=reach, server_ms=now_ms)
    if not prepared.rejected:
        return prepared
    end = pages[0].asked_from_ms + pages[0].asked_limit * step
    window = Interval(pages[0].asked_from_ms, min(end, reach.to_ms))
    near = [row for row in rows if not _is_next_pages(row, window.to_ms, now_ms)]
    return prepare(near, timeframe=series.timeframe, asked=window, server_ms=now_ms)


def _reach(page: BarPage, step: int) -> int:
    """Where an answer ends. A full one ends with its last row: the venue may have had more."""
    times = [int(row[0]) for row in page.rows if isinstance(row[0], int | float) and row[0] > 0]
    newest = max(times, default=0) + step
    end = page.asked_from_ms + page.asked_limit * step
    full = len(page.rows) >= page.asked_limit and newest > page.asked_from_ms
    return newest if full else max(newest, end)


def _is_next_pages(row: Row, end_ms: int, now_ms: int) -> bool:
    """A row behind the window that is not plainly wrong. A date in the future is."""
    ts = row[0]
    return isinstance(ts, int | float) and end_ms <= ts <= now_ms


def _doubtful(prepared: Prepared, series: Series, settled_ms: int) -> bool:
    """Whether a row was refused, or a slot from `settled_ms` on is said to be empty."""
    starts = ((max(each.from_ms, settled_ms), each.to_ms) for each in prepared.covered)
    slots = sum(max(0, end - start) for start, end in starts) // series.timeframe.ms
    bars = int((prepared.batch.ts >= settled_ms).sum())
    return bool(prepared.rejected) or slots > bars
