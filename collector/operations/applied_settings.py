"""The settings file against the database: what would change (`plan`), and the change (`apply`).

What the file declares is marked on its documents. Only a marked job is paused when it leaves the
file, and deleted only on request.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.connectors.connector import GLOBAL
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.errors import ConfigError, InvalidInput, JobConflict, NotFound
from collector.jobs import types
from collector.jobs.declared import DeclaredJobs, declared
from collector.jobs.earlier import extend
from collector.jobs.queue import JobQueue
from collector.operations import connected_jobs, connectors
from collector.operations.market_names import MarketNames
from collector.operations.settings_plan import (
    Action,
    SettingsChange,
    connector_change,
    connector_mark,
    job_changes,
    later_note,
    left_change,
    limits_of,
)
from collector.operations.wish_check import check_wish
from collector.operations.wished_settings import Wish, WishedConnector, WishedJob, wish_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from collector.settings import Settings

_AT_ONCE = 1_000
"""Keys that one query looks for."""


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """What changes, in the order in which it is done."""

    wish: Wish
    changes: Sequence[SettingsChange]
    notes: Sequence[str] = ()
    found: Mapping[str, Job] = field(default_factory=dict)
    """Jobs of the file that exist, by their key."""
    left: Sequence[Job] = ()
    """Declared jobs that the file no longer names."""

    @property
    def connectors_made(self) -> list[str]:
        return [
            each.exchange_id
            for each in self.changes
            if each.action is Action.CREATE and isinstance(each.wished, WishedConnector)
        ]

    @property
    def jobs_made(self) -> list[WishedJob]:
        return [
            each.wished
            for each in self.changes
            if each.action is Action.CREATE and isinstance(each.wished, WishedJob)
        ]


async def plan_settings(
    database: Database, settings: Settings, *, prune: bool = False
) -> SettingsPlan:
    """What `apply_settings` would do. ConfigError names every mistake of the file."""
    now_ms = await database.now_ms()
    unknown = await check_wish(settings, now_ms, MarketNames(database))
    wish = wish_of(settings, now_ms)
    registry, marks = ConnectorRegistry(database), DeclaredJobs(database)
    existing = {each.exchange_id: each for each in await registry.all()}
    changes = await _global_changes(database, wish)
    for wished in wish.connectors:
        usual = await asyncio.to_thread(venue_limits, wished.exchange_id)
        change = connector_change(wished, existing.get(wished.exchange_id), usual)
        changes += [] if change is None else [change]
    keys = [each.spec.unique_key for each in wish.jobs]
    found: dict[str, Job] = {}
    for start in range(0, len(keys), _AT_ONCE):
        found |= await marks.of_keys(keys[start : start + _AT_ONCE])
    for each in wish.jobs:
        changes += job_changes(each, found.get(each.spec.unique_key))
    notes = [later_note(each, found.get(each.spec.unique_key)) for each in wish.jobs]
    wanted = set(keys)
    left = [job for key, job in sorted((await marks.all()).items()) if key not in wanted]
    for job in left:
        gone = left_change(job, prune=prune)
        changes += [] if gone is None else [gone]
    if prune:
        changes += await _connectors_left(database, wish, existing.values(), left)
    said = [*unknown, *(note for note in notes if note is not None)]
    return SettingsPlan(wish, changes, said, found, left)


async def apply_settings(
    database: Database, settings: Settings, *, prune: bool = False
) -> SettingsPlan:
    """Makes the database as the file asks; what was done. Repeating it changes nothing."""
    plan = await plan_settings(database, settings, prune=prune)
    if plan.wish.global_limit is not None and any(
        each.exchange_id == GLOBAL for each in plan.changes
    ):
        await ConnectorRegistry(database).ensure_global(plan.wish.global_limit)
    await _apply_connectors(database, plan)
    made = await connected_jobs.add(database, [each.spec for each in plan.jobs_made])
    by_key = {**plan.found, **{job.document["unique_key"]: job for job, _ in made}}
    for change in plan.changes:
        if change.job is not None:
            await _change_job(database, change, change.job)
    await _mark(database, plan, by_key)
    for change in plan.changes:
        if change.action is Action.DELETE and change.job is None:
            await connected_jobs.remove_connector(database, change.exchange_id)
    return plan


async def _global_changes(database: Database, wish: Wish) -> list[SettingsChange]:
    limits = wish.global_limit
    if limits is None:
        return []
    found: Mapping[str, Any] = await database.system.find_one({"exchange_id": GLOBAL}) or {}
    wanted = (limits.rate_limit, limits.rate_limit_period_ms)
    if (found.get("rate_limit"), found.get("rate_limit_period_ms")) == wanted:
        return []
    action = Action.CHANGE if found else Action.CREATE
    return [SettingsChange(action, GLOBAL, (f"{wanted[0]} requests / {wanted[1]} ms",))]


async def _connectors_left(
    database: Database, wish: Wish, existing: Iterable[Connector], left: Sequence[Job]
) -> list[SettingsChange]:
    """Declared connectors that the file no longer names and that have no other active job."""
    named = {each.exchange_id for each in wish.connectors}
    found: list[SettingsChange] = []
    for connector in existing:
        exchange_id = connector.exchange_id
        if exchange_id in named or connector.document.get("declared") is None:
            continue
        active = await JobQueue(database).active_of_exchange(
            exchange_id, besides=types.belongings()
        )
        going = [
            job
            for job in left
            if job.exchange_id == exchange_id
            and job.status.value == "active"
            and job.type not in types.belongings()
        ]
        if active == len(going):
            found.append(SettingsChange(Action.DELETE, exchange_id, ("not in the file",)))
    return found


async def _apply_connectors(database: Database, plan: SettingsPlan) -> None:
    registry = ConnectorRegistry(database)
    changes = {
        each.exchange_id: each.values
        for each in plan.changes
        if isinstance(each.wished, WishedConnector)
    }
    for wished in plan.wish.connectors:
        try:
            limits, notes = limits_of(wished.named), wished.named.get("notes")
            ensured = await connectors.ensure(database, wished.exchange_id, limits, notes)
        except InvalidInput as error:
            raise ConfigError(f"exchanges.{wished.exchange_id}: {error}") from None
        values = dict(changes.get(wished.exchange_id, {}))
        mark = connector_mark(wished)
        if values or ensured.connector.document.get("declared") != mark:
            await registry.change_limits(wished.exchange_id, {**values, "declared": mark})


async def _change_job(database: Database, change: SettingsChange, job: Job) -> None:
    queue = JobQueue(database)
    try:
        match change.action:
            case Action.RESUME:
                await connected_jobs.resume(database, job.id)
            case Action.PAUSE:
                await queue.pause(job.id)
            case Action.DELETE:
                await queue.delete(job.id)
            case Action.CHANGE:
                await queue.change(job.id, **change.values)
            case Action.EXTEND:
                assert isinstance(change.wished, WishedJob)
                await extend(database, change.wished.spec)
    except (JobConflict, NotFound):
        return  # Another operator was faster; the next `apply` sees what is there.


async def _mark(database: Database, plan: SettingsPlan, by_key: Mapping[str, Job]) -> None:
    marks = DeclaredJobs(database)
    for wished in plan.wish.jobs:
        job = by_key[wished.spec.unique_key]
        if declared(job) != wished.declared:
            await marks.mark(job.id, wished.declared)
    for job in plan.left:
        mark = declared(job) or {}
        if not mark.get("left"):
            await marks.mark(job.id, {**mark, "left": True})
