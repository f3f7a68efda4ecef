"""Lists of jobs in the order they were created, every page by index alone.

An index returns documents in the order of ids only where each field before the id is fixed to one
value. Most lists do not fix all of them, so the other fields are enumerated: states and statuses
are known, and the exchanges, types and timeframes that exist are read from the index, one key per
value. MongoDB then merges the pieces, each of which is in order already. A page costs its own size
plus one key for each piece, however many jobs there are.

A symbol has few jobs, so its list is not divided further: the other filters are applied to them.
Nor is that of jobs named by their ids, nor of those that a search finds (searching.py).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from bson import ObjectId

from collector.jobs.list_filters import condition, states_of, values
from collector.jobs.searching import like, symbols_like
from collector.jobs.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.mongo.client import Collection, Document

PIECES_AT_ONCE = 50
"""MongoDB merges at most 200, and an absent timeframe and a status turn one piece into up to four.
"""


@dataclass(frozen=True, slots=True)
class ListIndex:
    """An index that ends in the id, and its fields before the status."""

    name: str
    fields: tuple[str, ...]


BY_STATUS = ListIndex("by_status", ())
BY_EXCHANGE = ListIndex("by_exchange", ("exchange_id",))
BY_SYMBOL = ListIndex("by_symbol", ("symbol", "exchange_id"))
BY_STATE = ListIndex("by_state", ("state", "type", "timeframe"))
BY_EXCHANGE_STATE = ListIndex("by_exchange_state", ("exchange_id", "state", "type", "timeframe"))


def index_for(filters: Mapping[str, object]) -> ListIndex:
    """The index that answers a list with these filters."""
    if "symbol" in filters:
        return BY_SYMBOL
    one_exchange = "exchange_id" in filters
    if filters.keys() & set(BY_STATE.fields):
        return BY_EXCHANGE_STATE if one_exchange else BY_STATE
    return BY_EXCHANGE if one_exchange else BY_STATUS


class JobListing:
    """Pages of the jobs collection."""

    def __init__(self, jobs: Collection) -> None:
        self._jobs = jobs

    async def page(
        self,
        filters: Mapping[str, str | Sequence[str]],
        *,
        after: ObjectId | None,
        limit: int,
        newest_first: bool,
    ) -> list[Document]:
        """Documents with exactly these values; live ones unless a status is given.

        `id` are the ids of jobs, `search` is a text (searching.py).
        """
        given = values(filters)
        ids, [text] = given.pop("id", None), given.pop("search", [""])
        asked, direction = condition(given), -1 if newest_first else 1
        if after is not None:
            asked["_id"] = {"$lt" if newest_first else "$gt": after}
        page = {"sort": [("_id", direction)], "limit": limit}
        if ids is not None:
            asked = {"$and": [asked, {"_id": {"$in": [ObjectId(each) for each in ids]}}]}
            return await self._jobs.find(asked, **page)
        if text.strip():
            symbols = await symbols_like(self._jobs, text, BY_SYMBOL.name)
            if symbols is not None:
                asked = {"$and": [asked, {"symbol": {"$in": symbols}}]}
                return await self._jobs.find(asked, hint=BY_SYMBOL.name, **page)
            asked = {"$and": [asked, like(text)]}
        return await self._in_pieces(given, asked, direction, limit)

    async def _in_pieces(
        self, given: Mapping[str, Sequence[str]], asked: Document, direction: int, limit: int
    ) -> list[Document]:
        index = index_for(given)
        pieces = [{**asked, **piece} for piece in await self._pieces(index, given)]
        if not pieces:
            return []
        pages = await asyncio.gather(
            *(
                self._jobs.find(
                    {"$or": pieces[start : start + PIECES_AT_ONCE]},
                    sort=[("_id", direction)],
                    limit=limit,
                    hint=index.name,
                )
                for start in range(0, len(pieces), PIECES_AT_ONCE)
            )
        )
        if len(pages) == 1:
            return pages[0]
        merged = sorted(chain(*pages), key=lambda each: each["_id"], reverse=direction < 0)
        return merged[:limit]

    async def _pieces(
        self, index: ListIndex, filters: Mapping[str, Sequence[str]]
    ) -> list[Document]:
        """Every combination of values that jobs have in the fields of the index."""
        pieces: list[Document] = [{}]
        for field in index.fields:
            values = await asyncio.gather(
                *(self._values(index, piece, field, filters) for piece in pieces)
            )
            pieces = [
                {**piece, field: value}
                for piece, found in zip(pieces, values, strict=True)
                for value in found
            ]
        return pieces

    async def _values(
        self, index: ListIndex, piece: Document, field: str, filters: Mapping[str, Sequence[str]]
    ) -> Iterable[str | None]:
        if field == "state" and field in filters:
            return list(states_of(filters[field]))
        if field in filters:
            return filters[field]
        if field == "state":
            return [state.value for state in State]
        return await distinct(self._jobs, piece, field, index.name)


async def distinct(jobs: Collection, fixed: Document, field: str, index: str) -> list[str | None]:
    """The values of the field after the `fixed` ones in the index, at one key each."""
    found = await jobs.aggregate([{"$match": fixed}, {"$group": {"_id": f"${field}"}}], hint=index)
    return [group["_id"] for group in found]
