"""Jobs whose symbol has some letters in it (market/letters.py), in the order of every list.

Few symbols fit most texts: their jobs are read by the index of symbols and put in order. A text
that fits many, such as a quote currency, is a condition on the list instead: its pages are soon
full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.market.letters import patterns

if TYPE_CHECKING:
    from collector.mongo.client import Collection, Document

FEW_SYMBOLS = 50


def like(text: str) -> Document:
    """The condition on a symbol."""
    found = [{"symbol": {"$regex": each, "$options": "i"}} for each in patterns(text)]
    return {"$and": found}


async def symbols_like(jobs: Collection, text: str, index: str) -> list[str] | None:
    """The symbols of jobs that fit, by the index of symbols alone; None when they are many."""
    stages: list[Any] = [
        {"$match": {"symbol": {"$gt": ""}, **like(text)}},
        {"$group": {"_id": "$symbol"}},
        {"$limit": FEW_SYMBOLS + 1},
    ]
    found = [group["_id"] for group in await jobs.aggregate(stages, hint=index)]
    return found if len(found) <= FEW_SYMBOLS else None
