"""`ohlcv_from_trades`: history that a venue no longer serves as bars, made from its trades.

It ends where the series begins, so a bar that the venue sent is never replaced by a made one. Made
bars are marked: their `source` is the exchange's id and `:trades`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from collector.errors import BadRequest, RetryLater
from collector.market.answer import sort_rows
from collector.market.interval import Interval
from collector.pipeline.from_trades import rows_of
from collector.store.port import Corrupt
from workers.handlers.asking import progress_with, series_of
from workers.handlers.merging import merged
from workers.handlers.registry import Done, Outcome
from workers.handlers.sparing import note_damage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from collector.exchanges.port import TradePage
    from collector.market.series import Series
    from collector.market.trade import Trade
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

PAGES_A_WRITE = 50
"""Pages that are gathered for one part."""


@dataclass(frozen=True, slots=True)
class FromTrades:
    """From the first trade, or the requested time, to the first bar of the series."""

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        if venue.quirks.trades_at_once(series.symbol) is None:
            raise BadRequest(
                f"{series.exchange_id} gives only the newest trades of {series.symbol}, no history"
            )
        if run.cursor.until_ms is None:
            raise BadRequest("a job for bars from trades needs cursor.until_ms")
        if run.cursor.page == 0:
            await _begin(run, venue, series)
        while run.cursor.since_ms < (run.cursor.until_ms or 0):
            await _Stretch(run, venue, series).to_a_write()
        try:
            await merged(venue.store.compact, series)
        except Corrupt as error:
            note_damage(series, error)
        return Done(cursor=replace(run.cursor, done=True))


async def _begin(run: JobRun, venue: Venue, series: Series) -> None:
    """Ends before the first bar there is, and begins with the first trade there is."""
    frame = series.timeframe
    span = await asyncio.to_thread(venue.store.span, series)
    until_ms = frame.floor(run.cursor.until_ms or 0)
    until_ms = until_ms if span is None else min(until_ms, span.from_ms)
    since_ms = run.cursor.since_ms
    while since_ms < until_ms:
        page = await run.tried(partial(venue.exchange.fetch_trades, series.symbol, since_ms))
        if page.trades or page.is_latest:
            since_ms = page.trades[0].ts if page.trades else until_ms
            break
        since_ms = page.to_ms
    begun = replace(
        run.cursor, since_ms=min(frame.floor(since_ms), until_ms), until_ms=until_ms, page=1
    )
    await run.commit(begun, pages=1, progress={"from_ms": begun.since_ms, "until_ms": until_ms})


class _Stretch:
    """Pages of trades, and one part with the bars they make whole."""

    def __init__(self, run: JobRun, venue: Venue, series: Series) -> None:
        self._run = run
        self._venue = venue
        self._series = series
        self._until_ms = run.cursor.until_ms or 0
        self._reached_ms = run.cursor.since_ms
        self._trades: list[Trade] = []
        self._pages = 0

    async def to_a_write(self) -> None:
        """What was gathered before an error is kept: its tokens are spent."""
        try:
            served_from_ms = await self._gather()
        except Exception:
            await self._keep()
            raise
        await self._keep()
        if served_from_ms is not None:
            await self._skip(served_from_ms)

    async def _gather(self) -> int | None:
        """Returns where the venue's trades go on, when it no longer has those in between."""
        while self._reached_ms < self._until_ms and not self._is_enough():
            page = await self._run.tried(self._asked)
            self._pages += 1
            if page.from_ms > self._reached_ms:
                return page.from_ms
            self._trades += page.trades
            self._reached_ms = page.to_ms
            if page.is_latest and self._reached_ms < self._until_ms:
                raise RetryLater(
                    f"{self._series}: the venue has not completed {self._reached_ms} yet",
                    retry_after_ms=self._series.timeframe.ms,
                )
        return None

    def _asked(self) -> Awaitable[TradePage]:
        return self._venue.exchange.fetch_trades(self._series.symbol, self._reached_ms)

    def _is_enough(self) -> bool:
        """A bar may need more pages than a write; without one the cursor would not move."""
        has_bar = self._series.timeframe.floor(self._reached_ms) > self._run.cursor.since_ms
        return has_bar and self._pages >= PAGES_A_WRITE

    async def _skip(self, served_from_ms: int) -> None:
        """Leaves out and reports the bars whose trades are lost: nothing covers their slots."""
        cursor, frame = self._run.cursor, self._series.timeframe
        # A bar with only some of its trades is not made.
        first_ms = (
            served_from_ms if frame.aligned(served_from_ms) else frame.next_open(served_from_ms)
        )
        next_ms = min(first_ms, self._until_ms)
        await self._run.commit(
            replace(cursor, since_ms=next_ms),
            progress=progress_with(self._run, [[cursor.since_ms, next_ms]]),
        )

    async def _keep(self) -> None:
        """Makes the bars that have ended durable, and then moves the cursor over them."""
        series, cursor = self._series, self._run.cursor
        end_ms = min(series.timeframe.floor(self._reached_ms), self._until_ms)
        if end_ms <= cursor.since_ms:
            return
        inside = [trade for trade in self._trades if cursor.since_ms <= trade.ts < end_ms]
        asked = Interval(cursor.since_ms, end_ms)
        rows = rows_of(inside, series.timeframe)
        bars, refused = sort_rows(rows, series.timeframe, asked, end_ms)
        await asyncio.to_thread(
            self._venue.store.append_page,
            series,
            bars,
            asked,
            fence=self._run.fence,
            known_at=self._venue.server_clock.now_ms(),
            rejected=refused,
            source=f"{series.exchange_id}:trades",
        )
        last_ts = int(bars.ts[-1]) if len(bars) else 0
        moved = replace(
            cursor,
            since_ms=end_ms,
            last_ts=max(cursor.last_ts, last_ts),
            page=cursor.page + self._pages,
        )
        await self._run.commit(moved, pages=self._pages, bars=len(bars))
