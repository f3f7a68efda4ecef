"""What is written into the `markets` collection, as data. Pure; book.py sends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pymongo import UpdateOne

from collector.markets.changes import Kind, MarketChange
from collector.mongo.client import NOW_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.exchanges.port import Markets
    from collector.mongo.client import Document

    Known = Mapping[str, Mapping[str, Any]]

MOST_CHANGES = 50
_WATCHED = ("limits", "precision")


def seen(document: Document, before: Mapping[str, Any] | None, *, is_new: bool) -> UpdateOne:
    """A market as the exchange describes it now, and what is different about it."""
    raw = document["raw"]
    fields = {**document, **{name: raw.get(name) or {} for name in _WATCHED}}
    different = {
        name: {"from": before[name], "to": fields[name]}
        for name in _WATCHED
        if before is not None and name in before and before[name] != fields[name]
    }
    update: Document = {
        **{name: {"$literal": value} for name, value in fields.items()},
        "first_seen_at": {"$ifNull": ["$first_seen_at", NOW_MS]},
        "seen_at": NOW_MS,
    }
    if different:
        noted = [{"$mergeObjects": [{"at": NOW_MS}, {"$literal": different}]}]
        every = {"$concatArrays": [{"$ifNull": ["$changes", []]}, noted]}
        update["changes"] = {"$slice": [every, -MOST_CHANGES]}
    if is_new:
        update["news"] = _change(Kind.LISTED)
    return UpdateOne(_one(document["exchange_id"], document["symbol"]), [{"$set": update}], True)


def moved(known: Known, fresh: Markets, change: MarketChange) -> Iterator[UpdateOne]:
    """A market that left, came back or has another name now.

    Each statement requires the previous state, so that two refreshes at a time record it once.
    """
    if change.kind is Kind.DELISTED:
        yield _left(fresh.exchange_id, change.symbol, {"news": _change(change.kind)})
    elif change.kind is Kind.RELISTED:
        yield _back(known, fresh, change.symbol, {"news": _change(change.kind)})
    elif change.kind is Kind.RENAMED and change.renamed_to is not None:
        fields = {"news": _change(change.kind), "renamed_to": {"$literal": change.renamed_to}}
        yield _left(fresh.exchange_id, change.symbol, fields)
        if change.renamed_to in known:
            yield _back(known, fresh, change.renamed_to, {})
        yield UpdateOne(
            _one(fresh.exchange_id, change.renamed_to),
            [{"$set": {"renamed_from": {"$literal": change.symbol}}}],
            True,
        )


def _left(exchange_id: str, symbol: str, fields: Document) -> UpdateOne:
    """Its epoch is over. When that began, only the venue may know."""
    epoch = {
        "listed": {"$ifNull": ["$relisted_ms", "$listed_ms", "$first_seen_at"]},
        "delisted": NOW_MS,
    }
    fields = {
        "active": False,
        "delisted_at": NOW_MS,
        "epochs": {"$concatArrays": [{"$ifNull": ["$epochs", []]}, [epoch]]},
        **fields,
    }
    return UpdateOne({**_one(exchange_id, symbol), "active": True}, [{"$set": fields}])


def _back(known: Known, fresh: Markets, symbol: str, fields: Document) -> UpdateOne:
    """A new epoch. It began after the last refresh in which the market was missing."""
    left_ms = known[symbol].get("delisted_at") or 0
    reported_ms = (
        next((each.listed_ms for each in fresh.markets if each.symbol == symbol), None) or 0
    )
    looked_ms = max((each.get("seen_at") or 0 for each in known.values()), default=0)
    fields = {
        "active": True,
        "delisted_at": None,
        "relisted_ms": reported_ms if reported_ms > left_ms else max(looked_ms, left_ms),
        "renamed_to": "$$REMOVE",
        **fields,
    }
    return UpdateOne({**_one(fresh.exchange_id, symbol), "active": False}, [{"$set": fields}])


def _one(exchange_id: str, symbol: str) -> Document:
    return {"exchange_id": exchange_id, "symbol": symbol}


def _change(kind: Kind) -> Document:
    return {"kind": kind.value, "at": NOW_MS}
