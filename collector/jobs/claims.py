"""What finished work claims to have fetched, to compare with what the lake holds.

The cursors of finished backfills and of incremental jobs claim the range that they have fetched.
When files are lost the lake covers less than that, and no job would ever fetch the rest: what is
claimed and not covered has to be fetched again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.fetching import DECODED_AT_ONCE, owned
from collector.jobs.gap_jobs import gap_jobs
from collector.jobs.listing import BY_SYMBOL
from collector.jobs.states import LIVE
from collector.market.interval import Interval, subtract, union
from collector.market.series import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.jobs.job import JobSpec
    from collector.mongo.client import Database, Document

_CLAIMING = [types.OHLCV_BACKFILL.name, types.OHLCV_INCREMENTAL.name]
_NEEDED = ["symbol", "timeframe", "type", "cursor", "progress.from_ms", "created_at"]


async def claimed(
    database: Database, exchange_id: str, symbols: Sequence[str]
) -> dict[Series, Interval]:
    """Claimed range by series: from the first bar that a backfill found to the current cursor.

    Without a backfill that has begun, from where the job for new bars was created: of what it
    fetched before that, if anything, the start is unknown.
    """
    documents = await database.jobs.find(
        {
            "symbol": {"$in": sorted(symbols)},
            "exchange_id": exchange_id,
            "status": {"$in": sorted(LIVE)},
            "type": {"$in": _CLAIMING},
        },
        projection=_NEEDED,
        hint=BY_SYMBOL.name,
        batch_size=DECODED_AT_ONCE,
    )
    starts: dict[Series, int] = {}
    ends: dict[Series, int] = {}
    for document in documents:
        series = Series.of(exchange_id, document["symbol"], document["timeframe"])
        ends[series] = max(ends.get(series, 0), document["cursor"]["since_ms"])
        start = _start(document)
        if start is not None:
            starts[series] = min(start, starts.get(series, start))
    return {
        series: Interval(start, ends[series])
        for series, start in starts.items()
        if start < ends[series]
    }


async def lost(
    database: Database,
    exchange_id: str,
    claims: Mapping[Series, Iterable[Interval]],
    covered: Mapping[Series, Sequence[Interval]],
) -> tuple[JobSpec, ...]:
    """Jobs for what is claimed, not covered, and not still ahead of another job."""
    taken = await owned(database, exchange_id, list(claims))
    specs: list[JobSpec] = []
    for series, stretches in claims.items():
        mine = taken.get((series.symbol, series.timeframe.name), ())
        step = series.timeframe
        whole = union(
            Interval(step.floor(each.from_ms), step.floor(each.to_ms))
            for each in stretches
            if step.floor(each.from_ms) < step.floor(each.to_ms)
        )
        specs += gap_jobs(series, subtract(whole, [*covered.get(series, ()), *mine]))
    return tuple(specs)


def _start(document: Document) -> int | None:
    """Where a backfill that has begun found the first bar, or where new bars were first fetched."""
    if document["type"] == types.OHLCV_INCREMENTAL.name:
        return int(document["created_at"].timestamp() * 1000)
    start = (document.get("progress") or {}).get("from_ms")
    return int(start) if start is not None and document["cursor"]["page"] else None
