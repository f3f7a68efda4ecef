"""Three venues' own rules, scaled to seconds, under four workers: what each venue counted.

Binance counts weight, in ten seconds here instead of sixty, Bybit requests in its five seconds, and
Kraken allows one a second. Each venue keeps a journal of what arrived, in the units it counts; no
connector's figures are used.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
import numpy as np

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.timeframe import Timeframe
from collector.simulated.windows import max_in_window, sliding_violations
from tests.support.processes import program
from tests.support.until import until
from tests.support.venue_process import COINS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.mongo.client import Database

WORKERS = 4
PERIODS = 2
TIMEFRAMES = ("1m", "1h", "1d")


@dataclass(frozen=True)
class Use:
    """A venue's journal."""

    exchange_id: str
    share: float
    """Of its budget, on average over every stretch of whole periods once all were at work."""
    fullest: int
    limit: int
    violations: int


@dataclass(frozen=True)
class Rule:
    """What a venue allows in any period of time, and where its journal is."""

    exchange_id: str
    limits: Limits
    window: Window
    symbols: tuple[str, ...]
    address: str

    async def give_work(self, database: Database) -> None:
        await ConnectorRegistry(database).ensure(self.exchange_id, self.limits)
        minute = Timeframe.parse("1m")
        cursor = Cursor(until_ms=minute.floor(SystemClock().wall_ms()))
        for symbol in self.symbols:
            for timeframe in TIMEFRAMES:
                await JobQueue(database).add(
                    JobSpec(self.exchange_id, "ohlcv_backfill", symbol, timeframe, cursor=cursor)
                )

    async def units(self) -> list[float]:
        """The moment of each request, as often as the venue counts it."""
        async with (
            aiohttp.ClientSession(self.address) as session,
            session.get("/journal") as answer,
        ):
            return list(await answer.json())

    async def is_over(self) -> bool:
        """Whether the first periods, in which workers start, and those that count have passed."""
        await asyncio.sleep(0.5)
        units = await self.units()
        return bool(units) and units[-1] - units[0] > (PERIODS + 3) * self.window.period_ms

    async def use(self) -> Use:
        units, limit, period_ms = await self.units(), self.window.limit, self.window.period_ms
        mean = mean_in_window(units, PERIODS * period_ms, after_ms=1.5 * period_ms)
        return Use(
            exchange_id=self.exchange_id,
            share=mean / (PERIODS * limit),
            fullest=max_in_window(units, period_ms),
            limit=limit,
            violations=sliding_violations(units, limit, period_ms),
        )


def mean_in_window(units: Sequence[float], length_ms: float, after_ms: float) -> float:
    """What a window holds on average, wherever it begins; not before all workers were busy."""
    begins = np.linspace(units[0] + after_ms, units[-1] - length_ms, 1000)
    ends = np.searchsorted(units, begins + length_ms)
    return float(np.mean(ends - np.searchsorted(units, begins)))


async def open_venues(stack: AsyncExitStack) -> list[Rule]:
    """Each venue in a process of its own."""
    addresses = {}
    for exchange_id in ("binance", "bybit", "kraken"):
        venue = program("tests.support.venue_process", exchange_id)
        addresses[exchange_id] = await (await stack.enter_async_context(venue)).address()
    weight = Window("weight", 200, 10_000)
    few = tuple(f"{coin}/USDT" for coin in COINS[:4])
    many = tuple(f"{coin}/USD" for coin in COINS)  # Kraken has one page of each series
    return [
        Rule(
            "binance",
            Limits(6_100, 300_000, windows=(weight,)),
            weight,
            few,
            addresses["binance"],
        ),
        _counted("bybit", 60, 5_000, few, addresses),
        _counted("kraken", 10, 10_000, many, addresses),
    ]


def _counted(
    name: str, limit: int, period_ms: int, symbols: tuple[str, ...], addresses: dict[str, str]
) -> Rule:
    """A venue that counts requests and nothing else."""
    window = Window("requests", limit, period_ms)
    return Rule(name, Limits(limit, period_ms), window, symbols, addresses[name])


async def budgets_used(database: Database, mongo_uri: str, root: Path) -> list[Use]:
    """What four workers made of the three budgets at once."""
    async with AsyncExitStack() as stack:
        rules = await open_venues(stack)
        for rule in rules:
            await rule.give_work(database)
        environment = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(root),
            "COLLECTOR_EXCHANGE_URLS": json.dumps(
                {rule.exchange_id: rule.address for rule in rules}
            ),
            # Small pages: what is measured is when requests arrive, not how fast bars are written.
            "COLLECTOR_API__ADAPTER": "binance",
            "COLLECTOR_API__PAGE_SIZE": "100",
        }
        for _ in range(WORKERS):
            await stack.enter_async_context(program("workers", **environment))
        for rule in rules:
            await until(rule.is_over, f"{rule.exchange_id} was asked long enough", 120)
        return [await rule.use() for rule in rules]
