"""Connectors with everything that belongs to one: its limits, and the duties of its exchange."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.errors import InvalidInput, NotFound
from collector.exchanges.registry import known_exchanges, near_matches
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.operations import connected_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.mongo.client import Database, Document


@dataclass(frozen=True, slots=True)
class Ensured:
    """An existing or new connector, and what was created for it."""

    connector: Connector
    made: bool
    duties_made: tuple[str, ...]
    """Ids of jobs."""


def check_exchange(exchange_id: str) -> str:
    """The id itself. InvalidInput names near matches when there is no such exchange."""
    if exchange_id in known_exchanges():
        return exchange_id
    reason = f"there is no exchange called {exchange_id!r}"
    raise InvalidInput("exchange_id", "unknown_exchange", reason, near_matches(exchange_id))


async def check_connector(database: Database, exchange_id: str) -> None:
    """Refuses an exchange without a connector: its jobs would never run."""
    check_exchange(exchange_id)
    try:
        await ConnectorRegistry(database).get(exchange_id)
    except NotFound:
        reason = f"there is no connector {exchange_id!r} yet: add one first"
        raise InvalidInput("exchange_id", "no_connector", reason) from None


async def pause(
    database: Database,
    exchange_id: str,
    until_ms: int | None = None,
    *,
    only_if: Document | None = None,
) -> Connector:
    """Stops every worker at its next token; with `until_ms` the pause ends by itself."""
    if until_ms is not None and until_ms <= await database.now_ms():
        raise InvalidInput("until", "in_the_past", "`until` is in the past")
    registry = ConnectorRegistry(database)
    return await registry.pause(exchange_id, until_ms=until_ms, only_if=only_if)


async def ensure(
    database: Database,
    exchange_id: str,
    figures: Mapping[str, Any] | None = None,
    notes: str | None = None,
) -> Ensured:
    """The exchange's connector and the duties every exchange has, created if there are none.

    `figures` are limits to begin with instead of the exchange's own; a connector that exists keeps
    what it has. InvalidInput for an unknown exchange or invalid limits.
    """
    check_exchange(exchange_id)
    try:
        # The figures of an exchange without quirks come from ccxt, whose import takes a second.
        limits = await asyncio.to_thread(venue_limits, exchange_id, figures)
    except ValueError as error:
        raise InvalidInput("rate_limit", "bad_limits", str(error)) from None
    connector, made = await ConnectorRegistry(database).ensure(exchange_id, limits, notes=notes)
    duties = [JobSpec(exchange_id, duty) for duty in types.duties()]
    jobs = await connected_jobs.add(database, duties)
    return Ensured(connector, made, tuple(str(job.id) for job, new in jobs if new))
