"""How far the collecting of new bars has come, at least, on every exchange.

A series whose newest slots the exchange reports as empty is unconfirmed (unconfirmed.py): it counts
up to the end of that report, and not as behind.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.listing import distinct
from collector.jobs.states import Status
from collector.jobs.unconfirmed import UnconfirmedTail, unconfirmed_tails

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document

LAG_INDEX = "lag"
_COLLECTING = {"type": types.OHLCV_INCREMENTAL.name, "status": Status.ACTIVE.value}


@dataclass(frozen=True, slots=True)
class Reached:
    """Up to where every active series of an exchange and timeframe is stored, or unconfirmed."""

    exchange_id: str
    timeframe: str
    since_ms: int
    unconfirmed: tuple[UnconfirmedTail, ...] = ()
    """The ends of the series that are unconfirmed."""


async def reached(database: Database) -> list[Reached]:
    """For every exchange and timeframe: one index key each, and one for each unconfirmed series."""
    tails = await unconfirmed_tails(database, database.server_clock.now_ms())
    exchange_ids = await distinct(database.jobs, _COLLECTING, "exchange_id", LAG_INDEX)

    async def of_exchange(exchange_id: str | None) -> list[Reached]:
        # The first key of each timeframe is its oldest cursor, and the only one that is read.
        oldest: Document = {"_id": "$timeframe", "since_ms": {"$first": "$cursor.since_ms"}}
        found = await database.jobs.aggregate(
            [
                {"$match": {**_COLLECTING, "exchange_id": exchange_id}},
                {"$sort": {"timeframe": 1, "cursor.since_ms": 1}},
                {"$group": oldest},
            ],
            hint=LAG_INDEX,
        )
        return [
            await _reached(
                database, Reached(str(exchange_id), each["_id"], each["since_ms"]), tails
            )
            for each in found
        ]

    each = await asyncio.gather(*(of_exchange(exchange_id) for exchange_id in exchange_ids))
    return [reached for found in each for reached in found]


async def count_behind(database: Database, reached: Reached, before_ms: int) -> int:
    """How many active series of an exchange and timeframe are behind a moment."""
    behind = await database.jobs.count_documents(
        {**_series(reached), "cursor.since_ms": {"$lt": before_ms}}, hint=LAG_INDEX
    )
    silent = [each for each in reached.unconfirmed if each.since_ms < before_ms <= each.until_ms]
    return max(0, behind - len(silent))


async def _reached(
    database: Database, oldest: Reached, tails: Sequence[UnconfirmedTail]
) -> Reached:
    """The oldest cursor, unless that series is unconfirmed; then the oldest of the others."""
    exchange_id, timeframe = oldest.exchange_id, oldest.timeframe
    mine = tuple(
        each for each in tails if (each.exchange_id, each.timeframe) == (exchange_id, timeframe)
    )
    silent = Counter(each.since_ms for each in mine)
    if oldest.since_ms not in silent:
        return Reached(exchange_id, timeframe, oldest.since_ms, mine)
    first = await database.jobs.find(
        _series(oldest),
        projection={"_id": 0, "cursor.since_ms": 1},
        sort=[("cursor.since_ms", 1)],
        hint=LAG_INDEX,
        limit=len(mine) + 1,
    )
    others = Counter(each["cursor"]["since_ms"] for each in first) - silent
    until_ms = min([*others, *(each.until_ms for each in mine)])
    return Reached(exchange_id, timeframe, until_ms, mine)


def _series(reached: Reached) -> Document:
    return {
        **_COLLECTING,
        "exchange_id": reached.exchange_id,
        "timeframe": reached.timeframe,
    }
