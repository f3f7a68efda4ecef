"""The series that are collected now, and the way to fetch a bar before its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.lease_statements import LEASE_INDEX
from collector.jobs.run_now import run_soon
from collector.jobs.states import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document


async def collected_series(database: Database, exchange_id: str) -> tuple[tuple[str, str], ...]:
    """Symbol and timeframe of every series whose new bars are fetched, in order."""
    documents = await database.jobs.find(
        {**_following(exchange_id), "priority": {"$gte": 0}},
        projection={"symbol": 1, "timeframe": 1},
        hint=LEASE_INDEX,
    )
    return tuple(sorted((each["symbol"], each["timeframe"]) for each in documents))


async def is_polled(database: Database, exchange_id: str) -> bool:
    """Whether new bars of any series are polled at the cadence of the price stream."""
    polled = {**_following(exchange_id), "schedule.mode": "poll"}
    return bool(await database.jobs.count_documents(polled, limit=1))


async def fetch_at_once(
    database: Database, exchange_id: str, closed: Sequence[tuple[str, str]]
) -> None:
    """Lets the jobs of these series run now."""
    if closed:
        series = [{"symbol": symbol, "timeframe": timeframe} for symbol, timeframe in closed]
        await run_soon(database, {**_following(exchange_id), "$or": series})


def _following(exchange_id: str) -> Document:
    return {
        "exchange_id": exchange_id,
        "type": types.OHLCV_INCREMENTAL.name,
        "status": Status.ACTIVE.value,
    }
