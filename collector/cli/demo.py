"""The demo: a simulated exchange in a home and database of its own.

Made-up bars must never lie beside real ones, so nothing of it is shared with a real collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.jobs.job import EXCHANGE_DUTIES, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.stream import stream_jobs

if TYPE_CHECKING:
    from collector.mongo.client import Database

DEMO_EXCHANGE = "simulated"
DEMO_SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT", "LINK/USDT")
_YEAR_MS = 365 * 86_400_000


async def add_demo_jobs(database: Database) -> None:
    """A year of minutes of five symbols, and every new minute. Does nothing the second time."""
    limits = venue_limits(DEMO_EXCHANGE)
    await ConnectorRegistry(database).ensure(DEMO_EXCHANGE, limits, notes="made-up bars")
    queue = JobQueue(database)
    now_ms = database.server_clock.now_ms()
    for duty in EXCHANGE_DUTIES:
        await queue.add(JobSpec(DEMO_EXCHANGE, duty))
    for symbol in DEMO_SYMBOLS:
        for spec in stream_jobs(
            DEMO_EXCHANGE, symbol, "1m", now_ms=now_ms, since_ms=now_ms - _YEAR_MS
        ):
            await queue.add(spec)
