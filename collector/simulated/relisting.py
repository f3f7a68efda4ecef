"""Markets that leave, come back or change their name while the exchange runs. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.durations import MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.simulated.listing import SimulatedMarket

Listings = tuple["SimulatedMarket", ...]


def delisted(listings: Listings, symbol: str, at_ms: int, *, hidden: bool = False) -> Listings:
    """Without bars of the symbol from the minute of `at_ms` on; `hidden` forgets that it was."""
    found = _found(listings, symbol)
    return _with(listings, found, replace(found, delisted_ms=_minute(at_ms), hidden=hidden))


def relisted(listings: Listings, symbol: str, at_ms: int) -> Listings:
    """With bars of the delisted symbol again, from the minute of `at_ms` on."""
    found = _found(listings, symbol)
    if found.delisted_ms is None:
        raise ValueError(f"{symbol} is not delisted")
    away = (*found.away, (found.delisted_ms, _minute(at_ms)))
    return _with(listings, found, replace(found, delisted_ms=None, away=away))


def renamed(listings: Listings, symbol: str, to: str) -> Listings:
    """The same market under another symbol; the exchange's own name of it stays."""
    found = _found(listings, symbol)
    base, _, quote = to.partition("/")
    if not base or not quote:
        raise ValueError(f"{to!r} is not a symbol like BTC/USDT")
    return _with(listings, found, replace(found, base=base, quote=quote, code=found.id))


def changed(listings: Listings, asked: Mapping[str, Any], now_ms: int) -> Listings:
    """Applies the operation in a JSON object; ValueError for an unknown one.

    `{"op": "delist", "symbol": "BTC/USDT", "at_ms": ..., "hidden": true}`, with `at_ms` for another
    moment than now; `relist` likewise; `{"op": "rename", "symbol": ..., "to": ...}`.
    """
    operation, symbol = asked.get("op"), str(asked.get("symbol"))
    at_ms = int(asked.get("at_ms", now_ms))
    if operation == "delist":
        return delisted(listings, symbol, at_ms, hidden=bool(asked.get("hidden")))
    if operation == "relist":
        return relisted(listings, symbol, at_ms)
    if operation == "rename":
        return renamed(listings, symbol, str(asked.get("to")))
    raise ValueError(f"op {operation!r} is not one of delist, relist, rename")


def _found(listings: Listings, symbol: str) -> SimulatedMarket:
    for listing in listings:
        if symbol in (listing.symbol, listing.id):
            return listing
    raise ValueError(f"there is no market {symbol!r}")


def _with(listings: Listings, old: SimulatedMarket, new: SimulatedMarket) -> Listings:
    return tuple(new if each is old else each for each in listings)


def _minute(at_ms: int) -> int:
    return at_ms - at_ms % MINUTE_MS
