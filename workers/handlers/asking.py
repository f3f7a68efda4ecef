"""One question for bars, and a second one where the answer to the first is not clear."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from collector.errors import NotServed
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.pipeline.closed import closed_end_ms
from collector.pipeline.doubt import NEIGHBOURS, needs_neighbours
from collector.pipeline.proof import AnswerExtent
from collector.pipeline.reading import AnswerRows, Reader, Reading, insisted
from collector.pipeline.second_question import second_question
from workers.handlers.bars import BarsAnswer, answered_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.exchanges.port import BarPage
    from collector.market.series import Series
    from collector.market.timeframe import Timeframe
    from workers.venues import Venue

NEAR_NOW_BARS = 10
"""An answer that ends this close to now may be a venue's newest rows, whatever the request."""


async def ask(
    venue: Venue, series: Series, since_ms: int, limit: int, *, accepted_ms: int = 0
) -> BarsAnswer:
    """The bars from `since_ms` on, at most `limit`. Bars before `accepted_ms` were accepted
    earlier.

    An answer that leaves doubts is followed by one more request about the range in doubt, and both
    count together. Raises NotServed when the venue keeps nothing that old.
    """
    sent, sent_ms = venue.clock.monotonic(), venue.server_clock.now_ms()
    page = await venue.exchange.fetch_bars(series.symbol, series.timeframe, since_ms, limit)
    arrived_ms = venue.server_clock.now_ms()
    venue.clock.observe(page.server_ms, sent)
    now_ms = await _venue_now(venue, page)
    reading = await _Doubting(venue, series, now_ms, accepted_ms).believed(page)
    known_at = answered_at(sent_ms, arrived_ms, venue.clock.on_servers_clock(page.server_ms))
    return BarsAnswer(series, now_ms, known_at, reading.prepared, reading.extents)


def extent_of(page: BarPage, timeframe: Timeframe, now_ms: int) -> AnswerExtent:
    """A page as far as its reach goes. Rows from the future are refused, and prove nothing."""
    asked = Interval(page.asked_from_ms, timeframe.shift(page.asked_from_ms, page.asked_limit))
    times = page.rows.times
    times = times[: np.searchsorted(times, now_ms, side="right")]
    last_ms = int(times[-1]) if len(times) else page.last_ms
    if page.first_ms is None or page.first_ms > now_ms or last_ms is None:
        return AnswerExtent(asked, None, None, 0, page.full, page.begins)
    inside = int(np.searchsorted(times, asked.to_ms))
    return AnswerExtent(
        asked, page.first_ms, min(last_ms, now_ms), inside, page.full, page.begins, page.last_ms
    )


async def _venue_now(venue: Venue, page: BarPage) -> int:
    if page.server_ms is not None:
        return page.server_ms
    await venue.clock.keep_fresh(venue.exchange)
    return venue.clock.now_ms()


class _Doubting:
    """Reads a page, and requests once more what cannot be accepted at once."""

    def __init__(self, venue: Venue, series: Series, now_ms: int, accepted_ms: int) -> None:
        self._venue = venue
        self._series = series
        self._timeframe = series.timeframe
        self._reader = Reader(
            series.timeframe, now_ms, accepted_ms, below_zero=venue.quirks.trades_below_zero
        )

    async def believed(self, page: BarPage) -> Reading:
        first = self._rows_of(page)
        reading = await self._read([first])
        again = self._question(reading)
        if again is None:
            return reading
        second = await self._asked_again(again)
        if second is None:
            return reading
        self._refuse_unserved(second.extent, first.extent.asked)
        both = await self._read([first, second])
        return insisted(reading, both, second, self._timeframe)

    async def _asked_again(self, stretch: Interval) -> AnswerRows | None:
        """The venue's answer about a range; None when it is older than what it serves."""
        series, limit = self._series, self._timeframe.count(stretch.from_ms, stretch.to_ms)
        with suppress(NotServed):
            page = await self._venue.exchange.fetch_bars(
                series.symbol, series.timeframe, stretch.from_ms, limit
            )
            return self._rows_of(page)
        return None

    def _rows_of(self, page: BarPage) -> AnswerRows:
        return AnswerRows(extent_of(page, self._timeframe, self._reader.now_ms), page.rows)

    async def _read(self, answers: Sequence[AnswerRows]) -> Reading:
        """Here and not in a thread: a page of columns takes less time than the way there."""
        reader = self._reader
        reading = reader.read(answers)
        if reader.before is None and needs_neighbours(reading.prepared.batch, reader.after_ms):
            before = await asyncio.to_thread(self._neighbours, answers[0].extent.asked.from_ms)
            self._reader = replace(reader, before=before)
            return self._reader.read(answers)
        return reading

    def _neighbours(self, until_ms: int) -> CandleBatch:
        """The stored bars before a moment, as far as they may count."""
        from_ms = max(0, self._timeframe.shift(until_ms, -NEIGHBOURS))
        stored = CandleBatch.from_arrow(self._venue.store.rows(self._series, from_ms, until_ms))
        return stored.take(~stored.filler)

    def _question(self, reading: Reading) -> Interval | None:
        extent = reading.extents[0]
        if self._is_of_another_time(extent, extent.asked):
            # With a larger page its newest rows may reach back to the requested range.
            largest = self._venue.quirks.default_page
            end_ms = self._timeframe.shift(extent.asked.from_ms, largest)
            if extent.asked.to_ms >= end_ms:
                self._refuse_unserved(extent, extent.asked)
            return Interval(extent.asked.from_ms, end_ms)
        if extent.first_ms is None and self._reader.after_ms:
            return None  # An incremental job sends a new request soon.
        return second_question(
            extent,
            reading.prepared,
            reading.doubtful.ts.tolist(),
            timeframe=self._timeframe,
            ended_ms=closed_end_ms(self._series.timeframe, self._reader.now_ms),
            after_ms=self._reader.after_ms,
        )

    def _is_of_another_time(self, extent: AnswerExtent, asked: Interval) -> bool:
        """Whether a venue `asked` about the past has answered with its newest rows."""
        if extent.first_ms is None or extent.newest_ms is None or extent.begins or not extent.full:
            return False
        near_now = extent.newest_ms >= self._timeframe.shift(self._reader.now_ms, -NEAR_NOW_BARS)
        return extent.first_ms >= asked.to_ms and near_now

    def _refuse_unserved(self, extent: AnswerExtent, asked: Interval) -> None:
        if extent.first_ms is not None and self._is_of_another_time(extent, asked):
            raise NotServed(
                f"{self._series.exchange_id} answers with its newest bars, from {extent.first_ms} "
                "on; those before are not to be had as bars",
                from_ms=extent.first_ms,
            )
