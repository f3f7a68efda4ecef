"""Connectors and jobs from the settings file (seed 004, section 8, steps 2 and 3).

Not a migration with a number: the file changes, and every `up` brings the database along. What is
there already is left as it is, also when somebody paused it or changed its limits since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.connectors.window import Window
from collector.jobs.job import EXCHANGE_DUTIES, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.stream import stream_jobs

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from collector.settings import ExchangeSettings, Settings


@dataclass(frozen=True, slots=True)
class Made:
    """What was not there before."""

    connectors: tuple[str, ...]
    jobs: tuple[str, ...]


async def apply_settings(database: Database, settings: Settings) -> Made:
    """Makes the connectors and jobs that the settings name and the database lacks."""
    registry, queue = ConnectorRegistry(database), JobQueue(database)
    await database.read_server_clock()
    now_ms = database.server_clock.now_ms()
    if settings.global_limit is not None:
        limit = settings.global_limit
        await registry.ensure_global(Limits(limit.rate_limit, limit.rate_limit_period_ms))
    connectors, jobs = [], []
    for exchange_id, given in _exchanges(settings).items():
        overrides = _overrides(given) if given else {}
        notes = given.notes if given else None
        _, made = await registry.ensure(
            exchange_id, venue_limits(exchange_id, overrides), notes=notes
        )
        connectors += [exchange_id] if made else []
        for duty in EXCHANGE_DUTIES:
            job, made = await queue.add(JobSpec(exchange_id, duty))
            jobs += [str(job.id)] if made else []
    for stream in settings.streams:
        for spec in stream_jobs(
            stream.exchange,
            stream.symbol,
            stream.timeframe,
            now_ms=now_ms,
            since_ms=stream.since_ms,
            backfill=stream.backfill,
        ):
            job, made = await queue.add(spec)
            jobs += [str(job.id)] if made else []
    return Made(tuple(connectors), tuple(jobs))


def _exchanges(settings: Settings) -> dict[str, ExchangeSettings | None]:
    """Those with settings of their own, and those only named by a stream."""
    named: dict[str, ExchangeSettings | None] = {
        stream.exchange: None for stream in settings.streams
    }
    return {**named, **settings.exchanges}


def _overrides(given: ExchangeSettings) -> dict[str, Any]:
    fields = given.model_dump(exclude={"circuit", "key_ref", "notes", "windows"})
    fields["circuit"] = given.circuit
    if given.windows is not None:
        fields["windows"] = tuple(Window(**window.model_dump()) for window in given.windows)
    return fields
