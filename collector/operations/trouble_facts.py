"""Reads what the rules of troubles.py look at: the last count of jobs (jobs/counting.py), and a few
queries whose cost does not depend on the number of jobs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseRefused, DatabaseUnavailable
from collector.history.inbox import damaged_networks
from collector.jobs.counting import JobCounting
from collector.jobs.lag import stale_before_ms
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.overdue import count_due, first_due
from collector.market.timeframe import Timeframe
from collector.operations.troubles import (
    OVERDUE_MS,
    LateJobs,
    Trouble,
    TroubleFacts,
    no_database,
    troubles,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.counting import Counts
    from collector.jobs.lag import Reached
    from collector.mongo.client import Database

PATIENCE_SECONDS = 5.0
"""A MongoDB that takes longer than this does not answer."""


async def troubles_now(database: Database, counts: Counts | None = None) -> list[Trouble]:
    """What is wrong now, by these counts or by the last ones. Without MongoDB that is the answer; a
    refused user is still an error.
    """
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return troubles(await trouble_facts(database, counts))
    except DatabaseRefused:
        raise
    except DatabaseUnavailable as error:
        return [no_database(str(error), database.away_since_ms)]
    except TimeoutError:
        return [no_database("MongoDB does not answer", database.away_since_ms)]


async def trouble_facts(database: Database, counts: Counts | None = None) -> TroubleFacts:
    """Reads them once."""
    if counts is None:
        counts = await JobCounting(database).last()
    now_ms = await database.now_ms()
    next_due = await first_due(database)
    return TroubleFacts(
        now_ms,
        await ConnectorRegistry(database).all(),
        counts.active,
        await LiveWorkers(database).all(),
        counts.failing,
        await _overdue(database, next_due, now_ms),
        _stale(counts),
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


def _stale(counts: Counts) -> list[LateJobs]:
    found = (_late(each, counts.counted_ms) for each in counts.reached)
    return [each for each in found if each is not None]


def _late(each: Reached, now_ms: int) -> LateJobs | None:
    if each.since_ms >= stale_before_ms(each.timeframe, each.exchange_id, now_ms):
        return None
    frame = Timeframe.parse(each.timeframe).at(each.exchange_id)
    return LateJobs(each.exchange_id, frame.shift(each.since_ms, 1), each.stale, each.timeframe)
