"""`trades_incremental`: the trades since the last run, by the day, every trade once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest
from collector.store.trades import append_trades
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.exchanges.port import TradePage
    from collector.jobs.job import Cursor
    from collector.market.trade import Trade
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

TRADES_A_WRITE = 50_000
"""A day's file is replaced whole, so pages are gathered up to this many trades."""
MISSED_KEPT = 20


@dataclass(frozen=True, slots=True)
class TradesIncremental:
    """Asks from the cursor on, page after page, until an answer reaches the present.

    Where a venue gives only its newest trades, what was traded between them and the cursor is
    lost; the job's `progress.missed` tells the last of these stretches.
    """

    venues: Venues

    async def __call__(self, run: JobRun) -> Outcome:
        symbol = run.job.symbol
        if not symbol:
            raise BadRequest(f"a {run.job.type} job needs a symbol")
        venue = await self.venues.with_markets(run.job.exchange_id, symbol)
        is_latest = False
        while not is_latest:
            is_latest = await _Gathering(run, venue, symbol).to_a_write()
        return Again()


class _Gathering:
    """Pages asked for one after another, and then one write for all of them."""

    def __init__(self, run: JobRun, venue: Venue, symbol: str) -> None:
        self._run = run
        self._venue = venue
        self._symbol = symbol
        self._cursor: Cursor = run.cursor
        self._trades: list[Trade] = []
        self._missed: list[list[int]] = []
        self._pages = 0

    async def to_a_write(self) -> bool:
        """Returns whether the present is reached, everything asked for being durable.

        What was gathered before an error is kept: its tokens are spent.
        """
        is_latest = False
        try:
            while not is_latest and len(self._trades) < TRADES_A_WRITE:
                self._run.check()
                page = await self._venue.exchange.fetch_trades(self._symbol, self._cursor.since_ms)
                self._take(page)
                is_latest = page.is_latest
        except Exception:
            await self._keep()
            raise
        await self._keep()
        return is_latest

    def _take(self, page: TradePage) -> None:
        if page.from_ms > self._cursor.since_ms:
            self._missed.append([self._cursor.since_ms, page.from_ms])
        self._trades += page.trades
        self._pages += 1
        last_ts = page.trades[-1].ts if page.trades else 0
        self._cursor = replace(
            self._cursor,
            since_ms=max(self._cursor.since_ms, page.to_ms),
            last_ts=max(self._cursor.last_ts, last_ts),
            page=self._cursor.page + 1,
        )

    async def _keep(self) -> None:
        """Makes the trades durable, and then moves the cursor over them."""
        if not self._pages:
            return
        await asyncio.to_thread(
            append_trades,
            self._venue.store.storage,
            self._venue.exchange.id,
            self._symbol,
            self._trades,
            known_at=self._venue.server_clock.now_ms(),
        )
        await self._run.commit(self._cursor, pages=self._pages, progress=self._told())

    def _told(self) -> dict[str, Any] | None:
        """The job's progress with what was missed; None leaves it as it is."""
        return told_missed(self._run, self._missed) if self._missed else None


def told_missed(run: JobRun, stretches: Iterable[list[int]]) -> dict[str, Any]:
    """A job's progress with stretches (epoch ms) whose trades the venue no longer told."""
    missed = [*(run.progress.get("missed") or ()), *stretches]
    return {**run.progress, "missed": missed[-MISSED_KEPT:]}
