"""`trades_incremental`: the trades since the last run, by the day, every trade once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest, InvalidInput
from collector.history.refusal import Refused
from collector.history.sources import ExchangeTrades
from collector.jobs.params import TradesParams
from collector.store.trades import append_trades
from workers.handlers.asking import progress_with
from workers.handlers.registry import Again, Outcome

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from collector.exchanges.port import TradePage
    from collector.jobs.job import Cursor
    from collector.market.trade import Trade
    from collector.operations.history_events import EventIntake
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

TRADES_A_WRITE = 50_000
"""Pages are gathered up to this many trades, so that one write is made for many answers."""
EVENTS_A_REQUEST = 1_000


@dataclass(frozen=True, slots=True)
class TradesIncremental:
    """Requests from the cursor on, page after page, until an answer reaches the present.

    Where a venue gives only its newest trades, what was traded between them and the cursor is lost;
    the job's `progress.missed` has the last of these ranges.
    """

    venues: Venues
    intake: EventIntake | None = None
    """Where trades go that a network of trade history is to have as well."""

    async def __call__(self, run: JobRun) -> Outcome:
        symbol = run.job.symbol
        if not symbol:
            raise BadRequest(f"a {run.job.type} job needs a symbol")
        venue = await run.tried(lambda: self.venues.with_markets(run.job.exchange_id, symbol))
        is_latest = False
        while not is_latest:
            is_latest = await _Gathering(run, venue, symbol, self.intake).to_a_write()
        return Again()


class _Gathering:
    """Pages requested one after another, and then one write for all of them."""

    def __init__(self, run: JobRun, venue: Venue, symbol: str, intake: EventIntake | None) -> None:
        self._run = run
        self._venue = venue
        self._symbol = symbol
        self._intake = intake
        self._cursor: Cursor = run.cursor
        self._trades: list[Trade] = []
        self._missed: list[list[int]] = []
        self._pages = 0

    async def to_a_write(self) -> bool:
        """Returns whether the present is reached, with all received trades durable.

        What was gathered before an error is kept: its tokens are spent.
        """
        is_latest = False
        try:
            while not is_latest and len(self._trades) < TRADES_A_WRITE:
                page = await self._run.tried(self._asked)
                self._take(page)
                is_latest = page.is_latest
        except Exception:
            await self._keep()
            raise
        await self._keep()
        return is_latest

    def _asked(self) -> Awaitable[TradePage]:
        return self._venue.exchange.fetch_trades(self._symbol, self._cursor.since_ms)

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
        await self._send_to_history()
        await self._run.commit(self._cursor, pages=self._pages, progress=self._progress())

    async def _send_to_history(self) -> None:
        """What was sent before is a repetition there and does no harm."""
        network = self._run.job.params_as(TradesParams).history
        if network is None or self._intake is None:
            return
        for begin in range(0, len(self._trades), EVENTS_A_REQUEST):
            some = self._trades[begin : begin + EVENTS_A_REQUEST]
            try:
                await self._intake.take(network, ExchangeTrades(network, self._symbol, some))
            except (InvalidInput, Refused) as error:
                raise BadRequest(f"trade history: {error}") from error

    def _progress(self) -> dict[str, Any] | None:
        """The job's progress with what was missed; None leaves it as it is."""
        return progress_with(self._run, self._missed) if self._missed else None
