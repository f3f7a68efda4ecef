"""The exchanges a worker has opened: one adapter each, its markets known, its bars gathered."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import ConfigError
from collector.markets.book import MarketBook
from collector.operations.exchange_access import ExchangeAccess
from collector.secrets import Keyring
from collector.store.group_commit import GroupCommit
from workers.drift_reports import DriftReports
from workers.exchange_clock import ExchangeClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from collector.clock import Clock
    from collector.connectors.limiter import Limiter
    from collector.exchanges.port import Exchange, Markets
    from collector.exchanges.quirks import Quirks
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.mongo.server_clock import ServerClock
    from collector.secrets import Credentials
    from collector.store.store import Store
    from workers.session_keeper import SessionKeeper


JUST_REFRESHED_MS = 60_000
"""A list of markets that is younger than this is taken at its word about an unknown symbol."""


@dataclass(frozen=True, slots=True)
class Venue:
    """One exchange, opened for requests."""

    exchange: Exchange
    quirks: Quirks
    commit: GroupCommit
    store: Store
    database: Database
    clock: ExchangeClock

    @property
    def server_clock(self) -> ServerClock:
        """The database's clock."""
        return self.database.server_clock


class Venues:
    """Opens exchanges when the first job needs them and closes them all on drain."""

    def __init__(
        self,
        database: Database,
        limiter: Limiter,
        store: Store,
        *,
        urls: Mapping[str, str],
        patience: float,
        clock: Clock,
        timeout_ms: int | None = None,
        page_sizes: Mapping[str, int] | None = None,
        keyring: Keyring | None = None,
        sessions: SessionKeeper | None = None,
        sections: Mapping[str, object] | None = None,
    ) -> None:
        """`page_sizes` are bars per request, where it is configured.

        Without `sessions` no exchange is opened whose account allows one login.
        """
        self.book = MarketBook(database)
        self._database = database
        self._store = store
        self._clock = clock
        self._sessions = sessions
        if sessions is not None:
            sessions.log_out = self.close_exchange
        self._access = ExchangeAccess(
            database,
            limiter,
            patience,
            urls=urls,
            timeout_ms=timeout_ms,
            page_sizes=page_sizes or {},
            keyring=keyring or Keyring(),
            clock=clock,
            sections=sections or {},
        )
        self._drifts = DriftReports(database)
        self._open: dict[str, Venue] = {}
        self._keys: dict[str, Credentials | None] = {}
        self._symbols: dict[str, frozenset[str]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Venues:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def get(self, exchange_id: str) -> Venue:
        """The venue, whatever is known of its markets."""
        async with self._locks.setdefault(exchange_id, asyncio.Lock()):
            return await self._get(exchange_id)

    async def with_markets(self, exchange_id: str, symbol: str | None = None) -> Venue:
        """The venue with its markets known: from the book when fresh, else requested and stored.

        A symbol that is not among them may have been listed since: the list is requested again,
        unless that was done a moment ago.
        """
        async with self._locks.setdefault(exchange_id, asyncio.Lock()):
            venue = await self._get(exchange_id)
            known = self._symbols.get(exchange_id)
            if known is not None and (symbol is None or symbol in known):
                return venue
            markets = await self.book.load(exchange_id)
            if markets is not None:
                venue.exchange.restore_markets(markets)
                known = self._symbols[exchange_id] = _symbols(markets)
                age_ms = await self.book.age_ms(exchange_id)
                if symbol is None or symbol in known or (age_ms or 0) < JUST_REFRESHED_MS:
                    return venue
            await self.refresh(venue)
            return venue

    async def of(self, series: Series) -> Venue:
        """The venue of a series, with its markets known."""
        return await self.with_markets(series.exchange_id, series.symbol)

    async def refresh(self, venue: Venue) -> None:
        """Requests the venue's markets and stores them."""
        markets = await venue.exchange.load_markets()
        await self.book.save(markets)
        self._symbols[venue.exchange.id] = _symbols(markets)

    async def close_exchange(self, exchange_id: str) -> None:
        """Ends its connections. It is opened again when the next job needs it."""
        async with self._locks.setdefault(exchange_id, asyncio.Lock()):
            await self._close(exchange_id)

    async def _close(self, exchange_id: str) -> None:
        venue = self._open.pop(exchange_id, None)
        self._symbols.pop(exchange_id, None)
        if venue is not None:
            await venue.exchange.close()

    async def _has_another_key(self, exchange_id: str) -> bool:
        """Whether an operator has replaced the key since the exchange was opened."""
        try:
            return await self._key_of(exchange_id) != self._keys[exchange_id]
        except ConfigError:
            return False  # Its file is being replaced, or is gone: what is open stays open.

    async def _key_of(self, exchange_id: str) -> Credentials | None:
        keyring = self._access.keyring
        if exchange_id not in keyring.references:
            return None
        return await asyncio.to_thread(keyring.credentials, exchange_id)

    async def _get(self, exchange_id: str) -> Venue:
        if exchange_id in self._open and await self._has_another_key(exchange_id):
            await self._close(exchange_id)
        venue = self._open.get(exchange_id)
        if venue is None:
            venue = self._open[exchange_id] = await self._opened(exchange_id)
        # Every run comes by here: what earlier answers showed is reported within minutes.
        await self._drifts.report(exchange_id, venue.clock)
        return venue

    async def _opened(self, exchange_id: str) -> Venue:
        right = None if self._sessions is None else self._sessions.right(exchange_id)
        self._keys[exchange_id] = await self._key_of(exchange_id)
        exchange, quirks = await self._access.open(exchange_id, right)
        commit = await self._stack.enter_async_context(GroupCommit(self._store, exchange_id))
        self._stack.push_async_callback(exchange.close)
        clock = ExchangeClock(self._database.server_clock, self._clock, exchange_id)
        return Venue(exchange, quirks, commit, self._store, self._database, clock)


def _symbols(markets: Markets) -> frozenset[str]:
    return frozenset(market.symbol for market in markets.markets)
