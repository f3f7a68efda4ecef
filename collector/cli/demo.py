"""The demo: a simulated exchange in a home and database of its own.

Made-up bars must never be stored beside real ones, so nothing is shared with a real collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.durations import DAY_MS
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.jobs.stream import stream_jobs
from collector.operations import connected_jobs, connectors

if TYPE_CHECKING:
    from collector.mongo.client import Database

DEMO_EXCHANGE = "simulated"
DEMO_SYMBOLS = ("BTC/USDT", "ETH/USDT", "SOL/USDT", "XRP/USDT", "LINK/USDT")
_YEAR_MS = 365 * DAY_MS


async def add_demo_jobs(database: Database) -> None:
    """A year of minutes of five symbols, every new minute, and live prices.

    Does nothing the second time.
    """
    await connectors.ensure(database, DEMO_EXCHANGE, notes="made-up bars")
    now_ms = database.server_clock.now_ms()
    specs = [JobSpec(DEMO_EXCHANGE, types.PRICE_STREAM.name)]
    for symbol in DEMO_SYMBOLS:
        specs += stream_jobs(DEMO_EXCHANGE, symbol, "1m", now_ms=now_ms, since_ms=now_ms - _YEAR_MS)
    await connected_jobs.add(database, specs)
