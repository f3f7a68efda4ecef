"""Three venues' own rules, scaled to seconds, under four workers: none is broken, each is used.

Binance counts weight, Bybit requests in five seconds, and Kraken allows hardly any: a tenth of
what the first two allow in a tenth of the time, or of the requests, and Kraken's one a second. Each
venue keeps a journal of what arrived, in the units it counts; no connector is asked how it went.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.exchanges.simulated.windows import max_in_window, sliding_violations
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from collector.market.timeframe import Timeframe
from tests.acceptance.processes import eventually, program
from tests.acceptance.spoken_venue import KRAKEN_COINS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.mongo.client import Database

WORKERS = 4
PERIODS = 2
TIMEFRAMES = ("1m", "1h", "1d")


@dataclass(frozen=True)
class Rule:
    """What a venue allows in any period of time, and where it tells what arrived."""

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
        """Whether the first period, in which workers start, and those that count have passed."""
        await asyncio.sleep(0.5)
        units = await self.units()
        return bool(units) and units[-1] - units[0] > (PERIODS + 2) * self.window.period_ms

    def check(self, units: Sequence[float]) -> None:
        limit, period_ms = self.window.limit, self.window.period_ms
        fullest = max_in_window(units, period_ms)
        # Of whole periods in a row, wherever they begin: our start and end fall on none of them.
        used = max_in_window(units, PERIODS * period_ms) / (PERIODS * limit)
        print(f"{self.exchange_id}: {used:.3f} of the budget, at most {fullest} of {limit}")
        assert sliding_violations(units, limit, period_ms) == 0, self.exchange_id
        assert used >= 0.95, self.exchange_id


async def open_venues(stack: AsyncExitStack) -> list[Rule]:
    """Each venue in a process of its own."""
    addresses = {}
    for exchange_id in ("binance", "bybit", "kraken"):
        venue = program("tests.acceptance.spoken_venue", exchange_id)
        addresses[exchange_id] = await (await stack.enter_async_context(venue)).address()
    weight = Window("weight", 600, 6_000)
    coins = tuple(f"{coin}/USD" for coin in KRAKEN_COINS)
    return [
        Rule(
            "binance",
            Limits(6_100, 30_000, windows=(weight,)),
            weight,
            ("BTC/USDT",),
            addresses["binance"],
        ),
        _counted("bybit", 60, 5_000, ("BTC/USDT", "BTC/USDT:USDT"), addresses),
        _counted("kraken", 10, 10_000, coins, addresses),
    ]


def _counted(
    name: str, limit: int, period_ms: int, symbols: tuple[str, ...], addresses: dict[str, str]
) -> Rule:
    """A venue that counts requests and nothing else."""
    window = Window("requests", limit, period_ms)
    return Rule(name, Limits(limit, period_ms), window, symbols, addresses[name])


async def test_no_venue_counts_too_much_and_none_is_left_idle(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        rules = await open_venues(stack)
        for rule in rules:
            await rule.give_work(database)
        environment = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(tmp_path),
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
            await eventually(rule.is_over, f"{rule.exchange_id} was asked long enough", 90)
        for rule in rules:
            rule.check(await rule.units())
