"""The exchanges a worker has opened: one adapter each, its markets known, its bars gathered."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.connectors.gate import ConnectorPermit, GatedExchange
from collector.connectors.market_book import MarketBook
from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.quirks import quirks_for
from collector.exchanges.registry import open_exchange
from collector.secrets import Keyring
from collector.store.group_commit import GroupCommit
from workers.exchange_clock import ExchangeClock

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from collector.clock import Clock
    from collector.connectors.limiter import Limiter
    from collector.exchanges.port import Exchange, Markets
    from collector.exchanges.quirks import Quirks
    from collector.mongo.client import Database
    from collector.mongo.server_clock import ServerClock
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Venue:
    """One exchange, ready to be asked for bars."""

    exchange: Exchange
    quirks: Quirks
    commit: GroupCommit
    store: Store
    server_clock: ServerClock
    clock: ExchangeClock


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
    ) -> None:
        """`page_sizes` are bars to ask an exchange for at a time, where somebody said so."""
        self.book = MarketBook(database)
        self._database = database
        self._limiter = limiter
        self._store = store
        self._urls = urls
        self._patience = patience
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._page_sizes = page_sizes or {}
        self._keyring = keyring or Keyring()
        self._registry = ConnectorRegistry(database)
        self._open: dict[str, Venue] = {}
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
        """The venue with its markets known: from the book when fresh, else asked and kept.

        A symbol that this worker has not heard of may have been listed since: it looks again.
        """
        async with self._locks.setdefault(exchange_id, asyncio.Lock()):
            venue = await self._get(exchange_id)
            known = self._symbols.get(exchange_id)
            if known is not None and (symbol is None or symbol in known):
                return venue
            markets = await self.book.load(exchange_id)
            if markets is not None:
                venue.exchange.restore_markets(markets)
                self._symbols[exchange_id] = _symbols(markets)
            elif known is None:
                await self.refresh(venue)
            return venue

    async def refresh(self, venue: Venue) -> None:
        """Asks for the venue's markets and keeps them."""
        markets = await venue.exchange.load_markets()
        await self.book.save(markets)
        self._symbols[venue.exchange.id] = _symbols(markets)

    async def _get(self, exchange_id: str) -> Venue:
        venue = self._open.get(exchange_id)
        if venue is None:
            venue = self._open[exchange_id] = await self._opened(exchange_id)
        return venue

    async def _opened(self, exchange_id: str) -> Venue:
        # Importing an exchange takes a moment, too long to hold up the other jobs.
        quirks = await asyncio.to_thread(quirks_for, exchange_id)
        page = self._page_sizes.get(exchange_id, quirks.default_page)
        quirks = replace(quirks, default_page=min(page, quirks.largest_page))
        permit = ConnectorPermit(self._limiter, self._registry, quirks, patience=self._patience)
        exchange = await asyncio.to_thread(
            open_exchange,
            exchange_id,
            permit,
            urls=self._urls,
            clock=self._clock,
            timeout_ms=self._timeout_ms,
            key=self._keyring.credentials(exchange_id),
        )
        gated = GatedExchange(exchange, self._registry)
        commit = await self._stack.enter_async_context(GroupCommit(self._store, exchange_id))
        self._stack.push_async_callback(gated.close)
        clock = ExchangeClock(self._database.server_clock, self._clock)
        return Venue(gated, quirks, commit, self._store, self._database.server_clock, clock)


def _symbols(markets: Markets) -> frozenset[str]:
    return frozenset(market.symbol for market in markets.markets)
