"""Checks of what was typed against what is known, with near matches for what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.failures import UsageMistake
from collector.cli.near import did_you_mean
from collector.connectors.market_book import MarketBook
from collector.errors import NotFound
from collector.exchanges.registry import known_exchanges
from collector.jobs.job import PRIORITIES
from collector.market.symbol import symbol_to_name
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.connectors.connector import Connector
    from collector.connectors.registry import ConnectorRegistry
    from collector.mongo.client import Database

_CUSTOMARY = ("1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w")


def known_exchange(exchange_id: str) -> str:
    """The id itself. Raises UsageMistake when there is no such exchange."""
    if exchange_id in known_exchanges():
        return exchange_id
    hint = did_you_mean(exchange_id, known_exchanges())
    raise UsageMistake(f"there is no exchange called {exchange_id!r}{hint}")


async def existing_connector(registry: ConnectorRegistry, exchange_id: str) -> Connector:
    """The connector. NotFound says what there is, or how to make it."""
    try:
        return await registry.get(exchange_id)
    except NotFound:
        made = [connector.exchange_id for connector in await registry.all()]
        if exchange_id in known_exchanges():
            hint = f": collector connector add {exchange_id}"
        else:
            hint = did_you_mean(exchange_id, made or known_exchanges())
        raise NotFound(f"there is no connector {exchange_id!r}{hint}") from None


def known_type(name: str) -> str:
    if name in PRIORITIES:
        return name
    hint = did_you_mean(name, PRIORITIES) or f"; there are {', '.join(sorted(PRIORITIES))}"
    raise UsageMistake(f"there is no type of job called {name!r}{hint}")


def known_timeframe(name: str, offered: Sequence[str] = ()) -> str:
    """The timeframe as it is stored. `offered` is what an exchange has, when that is known."""
    try:
        found = Timeframe.parse(name).name
    except ValueError as error:
        hint = did_you_mean(name, offered or _CUSTOMARY)
        raise UsageMistake(f"{error}{hint}") from None
    if offered and found not in offered:
        hint = did_you_mean(name, offered) or f"; it has {', '.join(offered)}"
        raise UsageMistake(f"the exchange has no timeframe {name!r}{hint}")
    return found


async def known_series(
    database: Database, exchange_id: str, symbols: Iterable[str], timeframes: Iterable[str]
) -> bool:
    """Raises UsageMistake for a symbol or timeframe that the exchange is known not to have.

    False when its markets were never read: then nothing is known, and a worker will find out.
    """
    book = MarketBook(database)
    for symbol in symbols:
        _form_of(symbol)
        market = await book.find(exchange_id, symbol)
        if market is None:
            listed = await book.symbols(exchange_id)
            if not listed:
                for timeframe in timeframes:
                    known_timeframe(timeframe)
                return False
            raise UsageMistake(f"{exchange_id} has no {symbol!r}{did_you_mean(symbol, listed)}")
        for timeframe in timeframes:
            known_timeframe(timeframe, tuple(market.get("timeframes") or ()))
    return True


def _form_of(symbol: str) -> None:
    try:
        symbol_to_name(symbol)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
