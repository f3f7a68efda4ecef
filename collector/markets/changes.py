"""What changed between two refreshes of an exchange's markets. Pure.

A market leaves when the exchange reports it as not traded, or no longer lists it. It is renamed
when its symbol is gone and another symbol has the exchange's own id of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.port import Market, Markets

    Known = Mapping[str, Mapping[str, Any]]

FEW_MARKETS = 20
"""From this many markets on, an answer that has lost more than half of them is not accepted."""


class Kind(StrEnum):
    LISTED = "listed"
    DELISTED = "delisted"
    RELISTED = "relisted"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class MarketChange:
    """What happened to one symbol."""

    kind: Kind
    symbol: str
    renamed_to: str | None = None


def changes(known: Known, fresh: Markets) -> tuple[MarketChange, ...]:
    """The changes from documents by symbol to a new answer; none when nothing was known before."""
    if not known:
        return ()
    named = {market.symbol for market in fresh.markets}
    traded = {market.symbol: market for market in fresh.markets if market.active}
    came = [each for each in traded.values() if not known.get(each.symbol, {}).get("active")]
    left = [symbol for symbol, each in known.items() if each.get("active") and symbol not in traded]
    vanished = [symbol for symbol in left if symbol not in named]
    if doubtful(known, fresh):
        left = [symbol for symbol in left if symbol in named]
        vanished = []
    renamed = _renamed(known, vanished, came)
    return (
        *(MarketChange(Kind.RENAMED, old, new) for old, new in renamed.items()),
        *(MarketChange(Kind.DELISTED, symbol) for symbol in left if symbol not in renamed),
        *(_came(known, each) for each in came if each.symbol not in renamed.values()),
    )


def doubtful(known: Known, fresh: Markets) -> bool:
    """Whether so many markets are missing at once that the answer must be incomplete."""
    listed = [symbol for symbol, each in known.items() if each.get("active")]
    named = {market.symbol for market in fresh.markets}
    vanished = sum(symbol not in named for symbol in listed)
    return len(listed) >= FEW_MARKETS and vanished * 2 > len(listed)


def _renamed(known: Known, vanished: list[str], came: list[Market]) -> dict[str, str]:
    """Old symbol to new. One id of the venue may serve a spot market and a contract."""
    new = {(each.venue_id, each.kind): each.symbol for each in came}
    keys = {symbol: (known[symbol]["venue_id"], known[symbol]["kind"]) for symbol in vanished}
    return {symbol: new[key] for symbol, key in keys.items() if key in new}


def _came(known: Known, market: Market) -> MarketChange:
    before = known.get(market.symbol)
    was_listed = before is not None and before.get("delisted_at") is not None
    return MarketChange(Kind.RELISTED if was_listed else Kind.LISTED, market.symbol)
