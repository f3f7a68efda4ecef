"""What changed between two looks at the markets of an exchange. Pure.

A market leaves when the exchange says that it is not traded, or does not name it any more. It is
renamed when its symbol is gone and another one has the exchange's own name for it.
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
"""From so many on, an answer that has lost more than half of them is not believed."""


class Kind(StrEnum):
    LISTED = "listed"
    DELISTED = "delisted"
    RELISTED = "relisted"
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one symbol."""

    kind: Kind
    symbol: str
    renamed_to: str | None = None


def changes(known: Known, fresh: Markets) -> tuple[Change, ...]:
    """From documents by symbol to a new answer. Nothing is news to who knew nothing."""
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
        *(Change(Kind.RENAMED, old, new) for old, new in renamed.items()),
        *(Change(Kind.DELISTED, symbol) for symbol in left if symbol not in renamed),
        *(_came(known, each) for each in came if each.symbol not in renamed.values()),
    )


def doubtful(known: Known, fresh: Markets) -> bool:
    """Whether so much has vanished at once that the answer must be cut short."""
    listed = [symbol for symbol, each in known.items() if each.get("active")]
    named = {market.symbol for market in fresh.markets}
    vanished = sum(symbol not in named for symbol in listed)
    return len(listed) >= FEW_MARKETS and vanished * 2 > len(listed)


def _renamed(known: Known, vanished: list[str], came: list[Market]) -> dict[str, str]:
    """Old symbol to new. One name of the venue's may serve a spot market and a contract."""
    new = {(each.venue_id, each.kind): each.symbol for each in came}
    keys = {symbol: (known[symbol]["venue_id"], known[symbol]["kind"]) for symbol in vanished}
    return {symbol: new[key] for symbol, key in keys.items() if key in new}


def _came(known: Known, market: Market) -> Change:
    before = known.get(market.symbol)
    was_listed = before is not None and before.get("delisted_at") is not None
    return Change(Kind.RELISTED if was_listed else Kind.LISTED, market.symbol)
