"""A venue's answer about a range of bars, validated and made durable."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.errors import BadRequest
from collector.market.interval import Interval, clipped, subtract, unbroken, union
from collector.market.series import Series
from collector.pipeline.proof import left

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.jobs.job import Job
    from collector.market.candles import CandleBatch
    from collector.pipeline.prepare import Prepared
    from collector.pipeline.proof import AnswerExtent
    from workers.venues import Venue

LIVE_EDGE_BARS = 3
"""An empty slot this close to now may be a bar that the venue has not made up yet."""


@dataclass(frozen=True, eq=False)
class BarsAnswer:
    """A venue's answer about a range, validated and ready to be stored."""

    series: Series
    now_ms: int
    known_at: int
    """When the venue answered, on MongoDB's clock: later answers are newer."""
    prepared: Prepared
    extents: tuple[AnswerExtent, ...]

    @property
    def asked(self) -> Interval:
        return self.extents[0].asked

    @property
    def bars(self) -> int:
        return len(self.prepared.batch)

    @property
    def last_ts(self) -> int:
        return int(self.prepared.batch.ts[-1]) if self.bars else 0

    @cached_property
    def edge_ms(self) -> int:
        """Where empty slots begin that are too young to be believed."""
        frame = self.series.timeframe
        last_bar_end = frame.end(self.last_ts) if self.bars else 0
        return max(last_bar_end, frame.shift(self.now_ms, -LIVE_EDGE_BARS))

    @cached_property
    def covered(self) -> tuple[Interval, ...]:
        """The slots it covers, without empty ones at its end that are too young."""
        return clipped(self.prepared.covered, Interval(0, self.edge_ms))

    @cached_property
    def refused(self) -> tuple[Interval, ...]:
        """The slots whose bar came and was refused, less those that another row filled."""
        frame = self.series.timeframe
        opens = (frame.floor(each.ts) for each in self.prepared.rejected if each.ts is not None)
        slots = (Interval(ts, frame.end(ts)) for ts in opens)
        found = [slot for slot in slots if slot.to_ms <= self.now_ms]
        return subtract(found, self.covered)

    @property
    def quiet(self) -> tuple[Interval, ...]:
        """What the venue reported as empty, without that being accepted yet."""
        return self._left[0]

    @property
    def open(self) -> tuple[Interval, ...]:
        """What it has not spoken about at all."""
        return self._left[1]

    @cached_property
    def _left(self) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
        """For the requested slots that have ended."""
        ended_ms = self.series.timeframe.floor(self.now_ms)
        if self.asked.from_ms >= ended_ms:
            return (), ()
        ended = Interval(self.asked.from_ms, min(self.asked.to_ms, ended_ms))
        return left(ended, self.extents, [*self.covered, *self.refused])

    def within(self, window: Interval) -> BarsAnswer:
        """The part of it about the slots of `window`."""
        batch = self.prepared.batch
        inside = (batch.ts >= window.from_ms) & (batch.ts < window.to_ms)
        prepared = replace(
            self.prepared,
            batch=batch.take(inside),
            covered=clipped(self.prepared.covered, window),
        )
        return replace(self, prepared=prepared)

    def also_covering(self, more: Iterable[Interval]) -> BarsAnswer:
        """The same, with these slots covered too."""
        covered = union([*self.prepared.covered, *more])
        return replace(self, prepared=replace(self.prepared, covered=covered))

    def doubting(self, stretches: Iterable[Interval]) -> BarsAnswer:
        """The same, with these slots, which have no bars, not covered."""
        covered = subtract(self.prepared.covered, stretches)
        return replace(self, prepared=replace(self.prepared, covered=covered))

    def without(self, known: CandleBatch) -> BarsAnswer:
        """Without the bars that are in `known` with the same values, and what they cover."""
        batch = self.prepared.batch
        same = np.zeros(len(batch), dtype=np.bool_)
        at = np.searchsorted(known.ts, batch.ts)
        held = at < len(known)
        held[held] = known.ts[at[held]] == batch.ts[held]
        same[held] = True
        extra = [(column, known.column(name)) for name, column in batch.extra.items()]
        for ours, theirs in (*zip(batch.values(), known.values(), strict=True), *extra):
            mine, other = ours[held], theirs[at[held]]
            same[held] &= (mine == other) | ((mine != mine) & (other != other))
        if not same.any():
            return self
        slots = unbroken(batch.ts[same], self.series.timeframe)
        rest = replace(
            self.prepared,
            batch=batch.take(~same),
            covered=subtract(self.prepared.covered, slots),
        )
        return replace(self, prepared=rest)

    @property
    def to_ms(self) -> int:
        """Where the job may continue: after what is covered, and after refused bars.

        The slot of a refused bar stays missing, for a gap job to own; it must not block this job.
        """
        ends = [each.to_ms for each in (*self.covered, *self.refused)]
        return max([self.asked.from_ms, *ends])


def series_of(job: Job) -> Series:
    """The series a job is about. Raises BadRequest when the job names none."""
    if not job.symbol or not job.timeframe:
        raise BadRequest(f"a {job.type} job needs a symbol and a timeframe")
    try:
        return Series.of(job.exchange_id, job.symbol, job.timeframe)
    except ValueError as error:
        raise BadRequest(str(error)) from error


async def keep(venue: Venue, answer: BarsAnswer, *, fence: int, alone: bool = False) -> None:
    """Returns when the whole answer is durable. `alone`: the job has no other on the way."""
    series, prepared, known_at = answer.series, answer.prepared, answer.known_at
    if prepared.rejected:
        await asyncio.to_thread(
            venue.store.quarantine, series, prepared.rejected, fence=fence, known_at=known_at
        )
    covered = answer.covered
    await venue.commit.add(
        series, prepared.batch, covered, fence=fence, known_at=known_at, alone=alone
    )


def answered_at(sent_ms: int, arrived_ms: int, reported_ms: int | None) -> int:
    """When the venue made an answer: between its request and its arrival, by the venue's own clock.

    A worker that was stopped reads an answer long after it was made. `reported_ms` is the venue's
    time, to the second; without it the answer may be as old as its request.
    """
    if reported_ms is None:
        return sent_ms
    return max(sent_ms, min(arrived_ms, reported_ms + 999))
