"""Whether symbols and timeframes exist, as far as an exchange's markets are known."""

from __future__ import annotations

import asyncio
import difflib
from typing import TYPE_CHECKING

from collector.errors import InvalidInput
from collector.exchanges.mistaken import mistaken_symbol, served_timeframes, without_bars
from collector.jobs.types import MARKETS_REFRESH
from collector.market.near import near
from collector.market.symbol import symbol_to_name
from collector.market.timeframe import Timeframe
from collector.markets.book import MarketBook
from collector.operations.meant_symbol import is_pattern, is_short, like, meant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.mongo.client import Database, Document

_SUGGESTIONS = 3
_CLOSE_ENOUGH = 0.4


class MarketNames:
    """Checks against the book of markets. Sends no request."""

    def __init__(self, database: Database) -> None:
        self._book = MarketBook(database)

    async def meant(
        self, exchange_id: str, names: Iterable[str], *, field: str = "symbol"
    ) -> list[str]:
        """The symbols that are meant: BTCUSDT where one market is written so, `*/USDT` for all
        listed markets like that. Others stay as they are: `check_series` looks at them.
        """
        found: dict[str, None] = {}
        for name in names:
            if is_pattern(name):
                found |= dict.fromkeys(await self._like(exchange_id, name, field))
            elif is_short(name):
                found[await self._written_so(exchange_id, name, field)] = None
            else:
                found[name] = None
        return list(found)

    async def one_meant(self, exchange_id: str, name: str, *, field: str = "symbol") -> str:
        """The same for a name that is one market: a pattern stays as it is."""
        return await self._written_so(exchange_id, name, field) if is_short(name) else name

    async def is_market(self, exchange_id: str, name: str) -> bool:
        """Whether the name, however it looks, is a symbol that is known."""
        return await self._book.find(exchange_id, name) is not None

    async def _like(self, exchange_id: str, pattern: str, field: str) -> list[str]:
        if not await self.symbols(exchange_id):
            how = f"add its connector, and a worker asks for them ({MARKETS_REFRESH.name})"
            reason = f"the markets of {exchange_id} are not known yet: {how}"
            raise InvalidInput(field, "unknown_markets", reason)
        found = like(pattern, await self._book.listed(exchange_id))
        if not found:
            reason = f"{exchange_id} lists no market like {pattern!r}"
            raise InvalidInput(field, "unknown_symbol", reason)
        return found

    async def _written_so(self, exchange_id: str, name: str, field: str) -> str:
        by_id = await self._book.page(exchange_id, {"venue_id": name, "active": True}, limit=2)
        if len(by_id) == 1:
            return str(by_id[0]["symbol"])
        listed = await self._book.listed(exchange_id)
        return meant(name, listed, exchange_id, field=field)

    async def check_series(
        self,
        exchange_id: str,
        symbols: Sequence[str],
        timeframes: Sequence[str],
        *,
        fields: tuple[str, str] = ("symbol", "timeframe"),
    ) -> bool:
        """Refuses a symbol or timeframe that the exchange does not have.

        False when its markets were never loaded. `fields` are the names of the two in the request.
        """
        stored = await self._stored(exchange_id, symbols)
        for symbol in symbols:
            market = stored.get(symbol)
            if market is None:
                market = await self.market(exchange_id, symbol, field=fields[0])
            offered = tuple((market or {}).get("timeframes") or ())
            if market is None:
                # An import, which takes too long to block other tasks of the process.
                offered = await asyncio.to_thread(served_timeframes, exchange_id)
            for name in timeframes:
                check_timeframe(name, offered, field=fields[1])
            if market is None:
                return False
        return True

    async def _stored(self, exchange_id: str, symbols: Sequence[str]) -> dict[str, Document]:
        """The markets of these symbols, asked for at once: a pattern may stand for thousands."""
        found = await self._book.named(exchange_id, {}, symbols, limit=len(symbols))
        return {each["symbol"]: each for each in found}

    async def market(self, exchange_id: str, symbol: str, *, field: str) -> Document | None:
        """The symbol's market; None when the exchange's markets are not known.

        InvalidInput when they are and it is not among them.
        """
        check_form(exchange_id, symbol, field=field)
        market = await self._book.find(exchange_id, symbol)
        if market is not None:
            return market
        symbols = await self.symbols(exchange_id)
        if not symbols:
            return None
        # They may have been loaded since the first lookup.
        market = await self._book.find(exchange_id, symbol)
        if market is None:
            like = await asyncio.to_thread(near, symbol, symbols)
            raise InvalidInput(field, "unknown_symbol", f"{exchange_id} has no {symbol!r}", like)
        return market

    async def symbols(self, exchange_id: str) -> list[str]:
        """What the exchange is known to list; empty when its markets are not known."""
        return await self._book.symbols(exchange_id)


class NoMarkets(MarketNames):
    """Checks without a book: what can be told from the names alone."""

    def __init__(self) -> None:
        pass

    async def meant(
        self, exchange_id: str, names: Iterable[str], *, field: str = "symbol"
    ) -> list[str]:
        return list(names)

    async def one_meant(self, exchange_id: str, name: str, *, field: str = "symbol") -> str:
        return name

    async def is_market(self, exchange_id: str, name: str) -> bool:
        return False

    async def _stored(self, exchange_id: str, symbols: Sequence[str]) -> dict[str, Document]:
        return {}

    async def market(self, exchange_id: str, symbol: str, *, field: str) -> None:
        check_form(exchange_id, symbol, field=field)

    async def symbols(self, exchange_id: str) -> list[str]:
        return []


def check_form(exchange_id: str, symbol: str, *, field: str) -> None:
    """Refuses a symbol that no market of this exchange can have."""
    mistake = mistaken_symbol(exchange_id, symbol)
    if mistake is not None:
        raise InvalidInput(field, mistake.code, mistake.reason, mistake.instead)
    try:
        symbol_to_name(symbol)
    except ValueError as error:
        raise InvalidInput(field, "unknown_symbol", str(error)) from None


async def check_bars(exchange_id: str) -> None:
    """Refuses an exchange that serves no bars."""
    # This may need an import, which takes too long to block other tasks of the process.
    mistake = await asyncio.to_thread(without_bars, exchange_id)
    if mistake is not None:
        raise InvalidInput("exchange_id", mistake.code, mistake.reason)


def known_timeframe(name: str, field: str = "timeframe") -> Timeframe:
    """The timeframe of that name, whether or not an exchange has it."""
    try:
        return Timeframe.parse(name)
    except ValueError as error:
        raise InvalidInput(field, "unknown_timeframe", str(error)) from None


def check_timeframe(name: str, offered: Sequence[str] = (), *, field: str = "timeframe") -> str:
    """The timeframe as it is stored. `offered` is what an exchange has, when that is known."""
    found = known_timeframe(name, field).name
    if offered and found not in offered:
        like = difflib.get_close_matches(name, offered, n=_SUGGESTIONS, cutoff=_CLOSE_ENOUGH)
        reason = f"the exchange has no timeframe {name!r}; it has {', '.join(offered)}"
        raise InvalidInput(field, "unknown_timeframe", reason, like)
    return found
