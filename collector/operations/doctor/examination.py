"""Looks at every area of an installation. What it cannot reach it reports, and goes on."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from collector.errors import CollectorError, ConfigError
from collector.exchanges.fxcm.failures import EXCHANGE_ID as FXCM
from collector.jobs.counting import JobCounting
from collector.mongo.schema import VERSION, current_version
from collector.operations.doctor import clock, exchanges
from collector.operations.doctor.access import access
from collector.operations.doctor.disk import disk
from collector.operations.doctor.exchange_keys import exchange_keys
from collector.operations.doctor.finding import Finding, ok, problem, warning
from collector.operations.doctor.fxcm import fxcm
from collector.operations.doctor.history import history
from collector.operations.doctor.mongodb import mongodb, unreachable
from collector.operations.doctor.redis import redis
from collector.operations.doctor.store import store
from collector.operations.doctor.versions import versions
from collector.operations.opened_database import unmigrated_database
from collector.operations.trouble_facts import trouble_facts
from collector.settings_file import default_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.operations.troubles import TroubleFacts
    from collector.settings import Settings

SETTINGS = "settings"
_UNKNOWN = "not checked: MongoDB cannot be reached"
_EMPTY = "none yet: the database is empty"
_OTHER_SCHEMA = "not checked: the database has another schema"


async def examine(read: Callable[[], Deployment], *, ask: bool = False) -> list[Finding]:
    """What is right and wrong, by area. `ask` also sends one request to each exchange."""
    try:
        where = read()
        _ = where.settings.mongo_address
    except ConfigError as error:
        helps = "correct the file, or the environment"
        return [problem(SETTINGS, str(error), helps), *versions()]
    settings = where.settings
    of_database, facts = await _database(where, ask=ask)
    return [
        _file(where),
        *of_database,
        *await asyncio.to_thread(disk, settings),
        *await asyncio.to_thread(store, settings),
        await asyncio.to_thread(history, settings),
        *access(settings),
        *exchange_keys(settings),
        *await fxcm(settings, used=_has_fxcm(facts), ask=ask),
        *await redis(settings),
        *versions(),
    ]


def _file(where: Deployment) -> Finding:
    path = where.config or default_file()
    return ok(SETTINGS, f"from {path}" if path else "no file: defaults and the environment")


async def _database(where: Deployment, *, ask: bool) -> tuple[list[Finding], TroubleFacts | None]:
    """The areas that need the database, and the facts they are made of; None without it."""
    try:
        async with AsyncExitStack() as stack:
            opening = unmigrated_database(where, "doctor")
            _, database = await stack.enter_async_context(opening)
            return await _areas(database, where.settings, ask=ask)
    except (CollectorError, PyMongoError) as error:
        lost = [warning(area, _UNKNOWN) for area in (clock.AREA, exchanges.AREA)]
        return [unreachable(where.settings, error), *lost], None


async def _areas(
    database: Database, settings: Settings, *, ask: bool
) -> tuple[list[Finding], TroubleFacts | None]:
    found = [*await mongodb(database, settings), await clock.this_machine(database)]
    schema = await current_version(database)
    if not schema:
        return [*found, ok(exchanges.AREA, _EMPTY)], None
    if schema != VERSION:
        return [*found, warning(exchanges.AREA, _OTHER_SCHEMA, "see mongodb above")], None
    facts = await trouble_facts(database, await JobCounting(database).count())
    found += clock.exchanges(facts.connectors, facts.at_ms)
    found += [*exchanges.workers(facts), *exchanges.exchanges(facts, settings)]
    if ask:
        found += await exchanges.asked(database, settings, facts)
    return found, facts


def _has_fxcm(facts: TroubleFacts | None) -> bool:
    return facts is not None and any(each.exchange_id == FXCM for each in facts.connectors)
