"""What unfinished jobs have still to fetch of some series; no other job needs to request it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.listing import BY_SYMBOL
from collector.jobs.states import LIVE
from collector.market.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from collector.mongo.client import Database

DECODED_AT_ONCE = 500
"""Rows are decoded in batches, so that other tasks of the process can run in between."""
# The range of a history from trades is known only once the job has begun.
_FETCHING = [types.OHLCV_BACKFILL.name, types.GAP_BACKFILL.name]
_NEEDED = ["symbol", "timeframe", "cursor.since_ms", "cursor.until_ms"]


async def owned(
    database: Database, exchange_id: str, series: Sequence[Series]
) -> dict[tuple[str, str], list[Interval]]:
    """What backfills and gap jobs have still to fetch, paused ones too, by symbol and timeframe."""
    documents = await database.jobs.find(
        {
            "symbol": {"$in": sorted({each.symbol for each in series})},
            "exchange_id": exchange_id,
            "status": {"$in": sorted(LIVE)},
            "type": {"$in": _FETCHING},
            "cursor.done": {"$ne": True},
        },
        projection=_NEEDED,
        hint=BY_SYMBOL.name,
        batch_size=DECODED_AT_ONCE,
    )
    stretches: dict[tuple[str, str], list[Interval]] = {}
    for document in documents:
        since, until = document["cursor"]["since_ms"], document["cursor"]["until_ms"]
        if until is not None and since < until:
            name = document["symbol"], document["timeframe"]
            stretches.setdefault(name, []).append(Interval(since, until))
    return stretches
