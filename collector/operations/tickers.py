"""Symbols as users and venues write them: BTCUSDT, BTC/USDT, or ALL. Always in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import InvalidInput, NotFound
from collector.market.near import did_you_mean, near
from collector.operations.meant_symbol import letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.markets.book import MarketBook

ALL = "ALL"


def wants_all(names: Sequence[str]) -> bool:
    return any(name.upper() == ALL for name in names)


def stored_symbols(names: Sequence[str], exchange_id: str, stored: Iterable[str]) -> list[str]:
    """The stored symbols that are meant, in order. NotFound names similar ones."""
    there = sorted(set(stored))
    if wants_all(names):
        if not there:
            raise NotFound(f"nothing is stored for {exchange_id} yet")
        return there
    return sorted({_stored(name, exchange_id, there) for name in names})


def _stored(name: str, exchange_id: str, there: Sequence[str]) -> str:
    found = name if name in there else spelt_so(name, there)
    if found is None:
        hint = did_you_mean(name, there) or ("" if there else ": nothing was collected yet")
        raise NotFound(f"nothing is stored for {exchange_id} {name!r}{hint}")
    return found


async def listed_symbols(names: Sequence[str], exchange_id: str, book: MarketBook) -> list[str]:
    """The exchange's symbols that are meant, in order. Raises InvalidInput for unknown ones."""
    return sorted({await _listed(name, exchange_id, book) for name in names})


async def _listed(name: str, exchange_id: str, book: MarketBook) -> str:
    if await book.find(exchange_id, name) is not None:
        return name
    by_id = await book.page(exchange_id, {"venue_id": name})
    if by_id:
        # One id may name both the spot market and its future.
        best = min(by_id, key=lambda market: (not market["active"], market["kind"] != "spot"))
        return str(best["symbol"])
    symbols = await book.symbols(exchange_id)
    found = spelt_so(name, symbols)
    if found is None:
        reason = f"{exchange_id} has no {name!r}"
        raise InvalidInput("symbols", "unknown_symbol", reason, near(name, symbols))
    return found


def spelt_so(name: str, symbols: Iterable[str]) -> str | None:
    """The symbol whose base and quote, without a separator, are `name`.

    A spot market (BTC/USDT) goes before a contract of the same name (BTC/USDT:USDT).
    """
    wanted = letters(name)
    same = [each for each in symbols if letters(each.partition(":")[0]) == wanted]
    return min(same, key=lambda each: (":" in each, each)) if same else None
