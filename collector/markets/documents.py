"""Markets as MongoDB keeps them: one document a market. Pure, and exact both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.exchanges.port import Market, Markets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def markets_to_documents(markets: Markets) -> list[dict[str, Any]]:
    """One document a market, unique by `exchange_id` and `symbol`; plain JSON and BSON types."""
    return [
        {
            "exchange_id": markets.exchange_id,
            "symbol": market.symbol,
            "venue_id": market.venue_id,
            "base": market.base,
            "quote": market.quote,
            "kind": market.kind,
            "active": market.active,
            "listed_ms": market.listed_ms,
            "timeframes": list(markets.timeframes),
            "raw": dict(market.raw),
        }
        for market in markets.markets
    ]


def markets_from_documents(exchange_id: str, documents: Iterable[Mapping[str, Any]]) -> Markets:
    """The markets that documents describe, by symbol; unknown fields are ignored.

    Documents of one refresh agree on the timeframes; the first one's are taken.
    """
    ordered = sorted(documents, key=lambda document: str(document["symbol"]))
    return Markets(
        exchange_id=exchange_id,
        markets=tuple(_market(document) for document in ordered),
        timeframes=tuple(ordered[0]["timeframes"]) if ordered else (),
    )


def _market(document: Mapping[str, Any]) -> Market:
    return Market(
        symbol=document["symbol"],
        venue_id=document["venue_id"],
        base=document["base"],
        quote=document["quote"],
        kind=document["kind"],
        active=document["active"],
        listed_ms=document["listed_ms"],
        raw=document["raw"],
    )
