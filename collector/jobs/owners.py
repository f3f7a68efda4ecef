"""Which job has to fetch what of some series: the owner of every slot that is still missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.fetching import DECODED_AT_ONCE
from collector.jobs.listing import BY_SYMBOL
from collector.jobs.states import LIVE
from collector.market.interval import Interval, clipped, subtract

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database

_FETCHING = (
    types.GAP_BACKFILL.name,
    types.OHLCV_BACKFILL.name,
    types.OHLCV_FROM_TRADES.name,
    types.OHLCV_INCREMENTAL.name,
)
"""The most particular first: it is the one that is named."""
_NEEDED = ["type", "symbol", "timeframe", "status", "state", "cursor", "stats.last_error"]
_END_OF_TIME = 2**52


@dataclass(frozen=True, slots=True)
class OwnerJob:
    """A job, and the range that it has still to fetch."""

    job_id: str
    type: str
    status: str
    state: str
    span: Interval


async def owners(
    database: Database, exchange_id: str, symbols: Sequence[str]
) -> dict[tuple[str, str], list[OwnerJob]]:
    """By symbol and timeframe, the most particular job first."""
    documents = await database.jobs.find(
        {
            "symbol": {"$in": sorted(set(symbols))},
            "exchange_id": exchange_id,
            "status": {"$in": sorted(LIVE)},
            "type": {"$in": list(_FETCHING)},
            "cursor.done": {"$ne": True},
        },
        projection=_NEEDED,
        hint=BY_SYMBOL.name,
        batch_size=DECODED_AT_ONCE,
    )
    found: dict[tuple[str, str], list[OwnerJob]] = {}
    for document in sorted(documents, key=lambda each: _FETCHING.index(each["type"])):
        since, until = document["cursor"]["since_ms"], document["cursor"]["until_ms"]
        end = _END_OF_TIME if until is None else until
        if since < end:
            owner = OwnerJob(
                str(document["_id"]),
                document["type"],
                document["status"],
                document["state"],
                Interval(since, end),
            )
            found.setdefault((document["symbol"], document["timeframe"]), []).append(owner)
    return found


def by_owner(
    hole: Interval, candidates: Sequence[OwnerJob]
) -> list[tuple[Interval, OwnerJob | None]]:
    """A missing range, cut where its owner changes; None owns what no job has to fetch."""
    pieces: list[tuple[Interval, OwnerJob | None]] = []
    rest: tuple[Interval, ...] = (hole,)
    for owner in candidates:
        pieces += [(each, owner) for each in clipped(rest, owner.span)]
        rest = subtract(rest, [owner.span])
    pieces += [(each, None) for each in rest]
    return sorted(pieces, key=lambda each: each[0])
