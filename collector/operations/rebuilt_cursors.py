"""Jobs and their cursors from the Parquet files alone, for a database that was lost.

The files of a series show where its coverage begins and ends. A stream continues from the end; a
backfill looks for bars before the beginning; the gap scan handles holes in between. Existing
cursors of the database are not moved: a cursor that is behind the files costs a few requests, one
that was moved wrongly costs bars.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.job import Cursor, JobSpec
from collector.operations import connected_jobs, connectors

if TYPE_CHECKING:
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.store.coverage import SeriesCursor as Stored
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What was found in the files, and what was created from it."""

    series: int
    connectors: tuple[str, ...]
    jobs: tuple[str, ...]


async def rebuild_cursors(database: Database, store: Store) -> Rebuilt:
    """Creates the connectors and jobs that the files prove and the database lacks."""
    found = await asyncio.to_thread(_cursors, store)
    made: list[str] = []
    jobs_made: list[str] = []
    for exchange_id in sorted({series.exchange_id for series in found}):
        ensured = await connectors.ensure(database, exchange_id)
        made += [exchange_id] if ensured.made else []
        jobs_made += ensured.duties_made
    specs = [spec for series, stored in found.items() for spec in _specs(series, stored)]
    jobs = await connected_jobs.add(database, specs)
    jobs_made += [str(job.id) for job, new in jobs if new]
    return Rebuilt(len(found), tuple(made), tuple(jobs_made))


def _cursors(store: Store) -> dict[Series, Stored]:
    """Every series from an exchange; bars made of minutes are made again from those."""
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
        spec(types.OHLCV_INCREMENTAL.name, Cursor(since_ms=stored.until_ms, last_ts=newest)),
        # One or two requests when nothing lies before.
        spec(types.OHLCV_BACKFILL.name, Cursor(until_ms=stored.since_ms)),
    )
