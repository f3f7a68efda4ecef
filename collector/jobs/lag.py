"""How far the collecting of new bars has come, at least, on every exchange. Read for a count of all
jobs (counting.py): its cost grows with the number of unconfirmed series, and of those behind.

A series whose newest slots the exchange reports as empty is unconfirmed (unconfirmed.py): it counts
up to the end of that report, and not as behind.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.durations import HOUR_MS, MINUTE_MS
from collector.jobs import types
from collector.jobs.listing import distinct
from collector.jobs.states import Status
from collector.jobs.unconfirmed import UnconfirmedTail, unconfirmed_tails
from collector.market.timeframe import Timeframe

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
    unconfirmed: int = 0
    """How many series end in silence that is unconfirmed."""
    stale: int = 0
    """How many series are stale."""


def stale_before_ms(timeframe: str, exchange_id: str, now_ms: int) -> int:
    """A series that is not stored up to here is stale: a bar closed long enough ago is missing."""
    frame = Timeframe.parse(timeframe).at(exchange_id)
    patience = min(max(5 * MINUTE_MS, frame.ms), HOUR_MS)
    return frame.floor(now_ms - patience)


async def reached(database: Database) -> list[Reached]:
    """For every exchange and timeframe: one index key each, and one for each series that is
    unconfirmed or stale.
    """
    now_ms = database.server_clock.now_ms()
    tails = await unconfirmed_tails(database, now_ms)
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
            await _reached(database, str(exchange_id), each["_id"], each["since_ms"], tails, now_ms)
            for each in found
        ]

    each = await asyncio.gather(*(of_exchange(exchange_id) for exchange_id in exchange_ids))
    return [reached for found in each for reached in found]


async def _reached(
    database: Database,
    exchange_id: str,
    timeframe: str,
    oldest_ms: int,
    all_tails: Sequence[UnconfirmedTail],
    now_ms: int,
) -> Reached:
    series = {**_COLLECTING, "exchange_id": exchange_id, "timeframe": timeframe}
    tails = [
        each for each in all_tails if (each.exchange_id, each.timeframe) == (exchange_id, timeframe)
    ]
    since_ms = await _since(database, series, oldest_ms, tails)
    before_ms = stale_before_ms(timeframe, exchange_id, now_ms)
    stale = 0
    if since_ms < before_ms:
        behind = await database.jobs.count_documents(
            {**series, "cursor.since_ms": {"$lt": before_ms}}, hint=LAG_INDEX
        )
        silent = [each for each in tails if each.since_ms < before_ms <= each.until_ms]
        stale = max(0, behind - len(silent))
    return Reached(exchange_id, timeframe, since_ms, len(tails), stale)


async def _since(
    database: Database, series: Document, oldest_ms: int, tails: Sequence[UnconfirmedTail]
) -> int:
    """The oldest cursor, unless that series is unconfirmed; then the oldest of the others."""
    silent = Counter(each.since_ms for each in tails)
    if oldest_ms not in silent:
        return oldest_ms
    first = await database.jobs.find(
        series,
        projection={"_id": 0, "cursor.since_ms": 1},
        sort=[("cursor.since_ms", 1)],
        hint=LAG_INDEX,
        limit=len(tails) + 1,
    )
    others = Counter[int](each["cursor"]["since_ms"] for each in first) - silent
    return min([*others, *(each.until_ms for each in tails)])
