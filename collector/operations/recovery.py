"""Connectors, jobs and cursors of a lost database, from what the lake holds.

The record of wishes (wishes.py) shows what was requested; the files show what was fetched. Each job
is created with the difference as its work, so no stored bar is requested again. A lake without a
record was written by an earlier version: then every stored series is kept up to date.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.wishes import bring_back
from collector.errors import InvalidInput
from collector.history.layout import stored_networks
from collector.jobs import types
from collector.jobs.cursor import Cursor
from collector.jobs.network import network_of
from collector.jobs.queue import JobQueue
from collector.jobs.recovery import recovered_job, recovered_series
from collector.jobs.skipping import skip_stored
from collector.market.series import Series
from collector.operations import connected_jobs, connectors
from collector.operations.history_events import apply_job
from collector.operations.rebuilt_cursors import rebuild_cursors
from collector.operations.stored_progress import collected_series, newest_trade_ms, stored_series
from collector.operations.wishes import Wishes, database_id, own_path, record_wishes, recorded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.jobs.job import Job, JobSpec
    from collector.jobs.wishes import JobWish
    from collector.mongo.client import Database
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was found in the lake, and what was created from it."""

    series: int
    connectors: tuple[str, ...]
    jobs: tuple[str, ...]
    moved: tuple[str, ...] = ()
    """Jobs that existed and now go on from what is stored."""
    not_requested: tuple[str, ...] = ()
    """Series that are stored and that were not requested any more: they get no jobs."""
    damaged: tuple[str, ...] = ()
    """Series with a damaged file: they go on from their recorded cursors."""
    unknown: tuple[str, ...] = ()
    """Exchanges that this program does not know: they are left out."""


async def recover(database: Database, store: Store) -> Recovered:
    """Creates what the lake proves and the database lacks. Repeating it changes nothing."""
    await database.read_server_clock()
    await record_wishes(database, store.storage)
    records = await asyncio.to_thread(recorded, store.storage)
    own = own_path(await database_id(database))
    if records:
        done = await _from_records(database, store, _merged(records, own))
    else:
        done = await _from_files(database, store)
    await record_wishes(database, store.storage)
    # This database has recorded all of it by now, unless it had to leave something out.
    for path in () if done.unknown else records.keys() - {own}:
        await asyncio.to_thread(store.storage.delete, path)
    return done


async def _from_files(database: Database, store: Store) -> Recovered:
    rebuilt = await rebuild_cursors(database, store)
    networks = await asyncio.to_thread(stored_networks, store.storage)
    added = [await JobQueue(database).add(apply_job(network)) for network in networks]
    jobs = (*rebuilt.jobs, *(str(job.id) for job, new in added if new))
    return Recovered(rebuilt.series, rebuilt.connectors, jobs)


async def _from_records(database: Database, store: Store, wishes: Wishes) -> Recovered:
    made, unknown = await _connectors(database, wishes.connectors)
    jobs = [wish for wish in wishes.jobs if wish.exchange_id not in unknown]
    by_series = _by_series(jobs)
    specs, damaged = await asyncio.to_thread(_specs, store, jobs, by_series)
    added = await _add(database, specs)
    existing = [(job, spec) for (job, new), spec in zip(added, specs, strict=True) if not new]
    moved = await skip_stored(database, existing)
    stored = await asyncio.to_thread(collected_series, store)
    return Recovered(
        series=len(stored),
        connectors=tuple(made),
        jobs=tuple(str(job.id) for job, new in added if new),
        moved=tuple(map(str, moved)),
        not_requested=tuple(str(each) for each in stored if each not in by_series),
        damaged=tuple(damaged),
        unknown=tuple(unknown),
    )


def _merged(records: Mapping[str, Wishes], own: str) -> Wishes:
    """One request of each kind: this database's own before all others, the newest before older."""
    oldest_first = sorted(records, key=lambda path: (path == own, records[path].recorded_ms))
    merged_connectors: dict[str, Mapping[str, Any]] = {}
    jobs: dict[tuple[str, str, str | None, str | None], JobWish] = {}
    for path in oldest_first:
        for each in records[path].connectors:
            merged_connectors[each["exchange_id"]] = each
        for wish in records[path].jobs:
            jobs[wish.exchange_id, wish.type, wish.symbol, wish.timeframe] = wish
    return Wishes(tuple(merged_connectors.values()), tuple(jobs.values()))


async def _connectors(
    database: Database, wishes: Sequence[Mapping[str, Any]]
) -> tuple[list[str], list[str]]:
    """The connectors that were created, and the exchanges that this program does not know."""
    made: list[str] = []
    unknown: list[str] = []
    for wish in wishes:
        exchange_id = wish["exchange_id"]
        try:
            connectors.check_exchange(exchange_id)
        except InvalidInput:
            unknown.append(exchange_id)
            continue
        made += [exchange_id] if await bring_back(database, wish) else []
    return made, unknown


def _by_series(jobs: Sequence[JobWish]) -> dict[Series, list[JobWish]]:
    found: dict[Series, list[JobWish]] = {}
    for wish in jobs:
        row = types.find(wish.type)
        if row is not None and row.scope is types.Scope.SERIES and wish.symbol and wish.timeframe:
            series = Series.of(wish.exchange_id, wish.symbol, wish.timeframe)
            found.setdefault(series, []).append(wish)
    return found


def _specs(
    store: Store, jobs: Sequence[JobWish], by_series: Mapping[Series, Sequence[JobWish]]
) -> tuple[list[JobSpec], list[str]]:
    """The jobs to create, and the series whose files are damaged. Waits for the disk."""
    specs: list[JobSpec] = []
    damaged: list[str] = []
    for series, wishes in by_series.items():
        stored = stored_series(store, series)
        if stored.is_damaged:
            damaged.append(str(series))
            specs += [recovered_job(wish, wish.at) for wish in wishes]
        else:
            specs += recovered_series(series, wishes, stored.covered, stored.last_ts)
    of_series = {id(wish) for wishes in by_series.values() for wish in wishes}
    specs += [_spec(store, wish) for wish in jobs if id(wish) not in of_series]
    return specs, damaged


def _spec(store: Store, wish: JobWish) -> JobSpec:
    if wish.type != types.TRADES_INCREMENTAL.name or wish.symbol is None:
        return recovered_job(wish)
    newest = newest_trade_ms(store, wish.exchange_id, wish.symbol)
    since_ms = wish.at.since_ms if newest is None else max(newest, wish.at.since_ms)
    return recovered_job(wish, Cursor(since_ms=since_ms, last_ts=newest or 0, page=wish.at.page))


async def _add(database: Database, specs: Sequence[JobSpec]) -> list[tuple[Job, bool]]:
    """The jobs in the order of their specifications. A network's jobs have no connector."""
    connected = [spec for spec in specs if network_of(spec.exchange_id) is None]
    added = dict(
        zip(map(id, connected), await connected_jobs.add(database, connected), strict=True)
    )
    queue = JobQueue(database)
    return [added.get(id(spec)) or await queue.add(spec) for spec in specs]
