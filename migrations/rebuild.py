"""Jobs and their cursors from the Parquet files alone, for a database that was lost.

The files of a series tell where its coverage begins and ends. A stream goes on from the end; a
backfill looks for what may lie before the beginning; holes in between are for the gap scan. What
the database knows already is not moved: a cursor that is behind the files costs a few requests, one
that was moved wrongly costs bars.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.jobs.job import EXCHANGE_DUTIES, Cursor, JobSpec
from collector.jobs.queue import JobQueue

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.store.coverage import Cursor as Stored
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was found in the files, and what was made of it."""

    series: int
    connectors: tuple[str, ...]
    jobs: tuple[str, ...]


async def rebuild_cursors(database: Database, store: Store) -> Rebuilt:
    """Makes the connectors and jobs that the files tell of and the database lacks."""
    registry, queue = ConnectorRegistry(database), JobQueue(database)
    found = await asyncio.to_thread(_cursors, store)
    connectors, jobs = [], []
    for exchange_id in sorted({series.exchange_id for series in found}):
        _, made = await registry.ensure(exchange_id, venue_limits(exchange_id, {}))
        connectors += [exchange_id] if made else []
        for duty in EXCHANGE_DUTIES:
            job, made = await queue.add(JobSpec(exchange_id, duty))
            jobs += [str(job.id)] if made else []
    for series, stored in found.items():
        for spec in _specs(series, stored):
            job, made = await queue.add(spec)
            jobs += [str(job.id)] if made else []
    return Rebuilt(len(found), tuple(connectors), tuple(jobs))


def _cursors(store: Store) -> dict[Series, Stored]:
    """Of every series that an exchange told; what was made of minutes is made again of them."""
    collected = (series for series in store.series() if store.holds(series))
    found = ((series, store.cursor(series)) for series in collected)
    return {series: cursor for series, cursor in found if cursor is not None}


def _specs(series: Series, stored: Stored) -> tuple[JobSpec, JobSpec]:
    def spec(kind: str, cursor: Cursor) -> JobSpec:
        return JobSpec(
            series.exchange_id, kind, series.symbol, series.timeframe.name, cursor=cursor
        )

    newest = stored.last_ts or 0
    return (
        spec("ohlcv_incremental", Cursor(since_ms=stored.until_ms, last_ts=newest)),
        # One or two requests when nothing lies before.
        spec("ohlcv_backfill", Cursor(until_ms=stored.since_ms)),
    )
