"""Reads what the rules of troubles.py look at: a few indexed queries, whatever the number of jobs.

The number of active jobs is the workers' last count (jobs/counting.py), or counted now.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseRefused, DatabaseUnavailable
from collector.history.inbox import damaged_networks
from collector.jobs.counting import JobCounting
from collector.jobs.failing import failing_jobs
from collector.jobs.lag import count_behind, reached
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.overdue import count_due, first_due
from collector.jobs.states import Status
from collector.market.timeframe import Timeframe
from collector.operations.troubles import (
    OVERDUE_MS,
    LateJobs,
    Trouble,
    TroubleFacts,
    no_database,
    stale_before_ms,
    troubles,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.lag import Reached
    from collector.mongo.client import Database

PATIENCE_SECONDS = 5.0
"""A MongoDB that takes longer than this does not answer."""


async def troubles_now(database: Database, *, count_now: bool = False) -> list[Trouble]:
    """What is wrong now. Without MongoDB that is the answer; a refused user is still an error."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return troubles(await trouble_facts(database, count_now=count_now))
    except DatabaseRefused:
        raise
    except DatabaseUnavailable as error:
        return [no_database(str(error), database.away_since_ms)]
    except TimeoutError:
        return [no_database("MongoDB does not answer", database.away_since_ms)]


async def trouble_facts(database: Database, *, count_now: bool = False) -> TroubleFacts:
    """Reads them once. `count_now` counts the jobs instead of reading the last count."""
    now_ms = await database.now_ms()
    counting = JobCounting(database)
    counts = await (counting.count() if count_now else counting.last())
    active: Counter[str] = Counter()
    for each in counts:
        if each.status == Status.ACTIVE:
            active[each.exchange_id] += each.count
    next_due = await first_due(database)
    return TroubleFacts(
        now_ms,
        await ConnectorRegistry(database).all(),
        active,
        await LiveWorkers(database).all(),
        await failing_jobs(database),
        await _overdue(database, next_due, now_ms),
        await _stale(database, now_ms),
        next_due,
        await damaged_networks(database),
    )


async def _overdue(database: Database, next_due: Mapping[str, int], now_ms: int) -> list[LateJobs]:
    before_ms = now_ms - OVERDUE_MS
    return [
        LateJobs(exchange_id, at_ms, await count_due(database, exchange_id, before_ms))
        for exchange_id, at_ms in next_due.items()
        if at_ms < before_ms
    ]


async def _stale(database: Database, now_ms: int) -> list[LateJobs]:
    found = [await _behind(database, each, now_ms) for each in await reached(database)]
    return [each for each in found if each is not None]


async def _behind(database: Database, each: Reached, now_ms: int) -> LateJobs | None:
    before_ms = stale_before_ms(each.timeframe, each.exchange_id, now_ms)
    if each.since_ms >= before_ms:
        return None
    frame = Timeframe.parse(each.timeframe).at(each.exchange_id)
    jobs = await count_behind(database, each, before_ms)
    return LateJobs(each.exchange_id, frame.shift(each.since_ms, 1), jobs, each.timeframe)
