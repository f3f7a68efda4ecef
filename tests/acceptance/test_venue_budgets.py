"""Three venues' own rules, scaled to seconds, under four workers: none is broken, each is used.

Binance counts weight, Bybit requests in five seconds, and Kraken allows hardly any. Each venue here
keeps a journal of what arrived, in the units it counts; no connector is asked how it went.
"""

from __future__ import annotations

import json
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.window import Window
from collector.exchanges.simulated.listing import listings
from collector.exchanges.simulated.server import SimulatedExchange
from collector.exchanges.simulated.windows import max_in_window, sliding_violations
from collector.jobs.job import Cursor, JobSpec
from collector.jobs.queue import JobQueue
from tests.acceptance.fleet import DAY
from tests.acceptance.processes import eventually, program
from tests.contract.ccxt_venue import MINUTE, Venue, recording, says, serving
from tests.contract.dialects import DIALECTS
from tests.contract.dialects.dialect import dated

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from typing import Any

    from aiohttp import web

    from collector.mongo.client import Database

WORKERS = 4
PERIODS = 2
YEARS_MS = 3 * 365 * DAY
KRAKEN_COINS = ("ADA", "DOT", "ETH", "LTC", "SOL", "TRX", "UNI", "XRP")


@dataclass(frozen=True)
class Rule:
    """What a venue allows in any period, and the units that arrived so far, each by its moment."""

    exchange_id: str
    limits: Limits
    window: Window
    symbols: tuple[str, ...]
    arrivals: Callable[[], list[float]]

    async def give_work(self, database: Database) -> None:
        await ConnectorRegistry(database).ensure(self.exchange_id, self.limits)
        cursor = Cursor(until_ms=MINUTE.floor(SystemClock().wall_ms()))
        for symbol in self.symbols:
            for timeframe in ("1m", "1h"):
                await JobQueue(database).add(
                    JobSpec(self.exchange_id, "ohlcv_backfill", symbol, timeframe, cursor=cursor)
                )

    async def is_over(self) -> bool:
        """Whether the first period, in which workers start, and those that count have passed."""
        arrivals = self.arrivals()
        return bool(arrivals) and arrivals[-1] - arrivals[0] > (PERIODS + 2) * self.window.period_ms

    def check(self) -> None:
        arrivals, limit, period_ms = self.arrivals(), self.window.limit, self.window.period_ms
        fullest = max_in_window(arrivals, period_ms)
        # Of whole periods in a row, wherever they begin: our start and end fall on none of them.
        used = max_in_window(arrivals, PERIODS * period_ms) / (PERIODS * limit)
        print(f"{self.exchange_id}: {used:.3f} of the budget, at most {fullest} of {limit}")
        assert sliding_violations(arrivals, limit, period_ms) == 0, self.exchange_id
        assert used >= 0.95, self.exchange_id


class Spoken:
    """A venue in its own format, which notes when each request arrived."""

    def __init__(self, exchange_id: str) -> None:
        self._dialect = DIALECTS[exchange_id]
        self._first_ms = SystemClock().wall_ms() - YEARS_MS
        self.arrivals: list[float] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.arrivals.append(time.monotonic() * 1000)
        now_ms = SystemClock().wall_ms()
        return await says(200, self._body(request, now_ms), headers=dated(now_ms))(request)

    def _body(self, request: web.Request, now_ms: int) -> Any:
        dialect = self._dialect
        name = dialect.recording_for(request)
        if name == dialect.bars_file:
            body = dialect.page(dialect.answer(request, self._first_ms, now_ms))
            if dialect.exchange_id == "kraken":
                body["result"][request.query["pair"]] = body["result"].pop("XXBTZUSD")
            return body
        body = recording(dialect.exchange_id, name)
        return with_more_coins(body) if name == "AssetPairs" else body


def with_more_coins(pairs: Any) -> Any:
    """Kraken has one page of each series, and the recording one pair: too little work."""
    bitcoin = json.dumps(pairs["result"]["XXBTZUSD"])
    for coin in KRAKEN_COINS:
        renamed = bitcoin.replace("XXBT", coin).replace("XBT", coin)
        pairs["result"][f"{coin}USD"] = json.loads(renamed)
    return pairs


async def open_venues(stack: AsyncExitStack) -> AsyncIterator[tuple[Rule, str]]:
    """Each venue's rule and its address."""
    listed = listings(4, listed_ms=MINUTE.floor(SystemClock().wall_ms() - YEARS_MS))
    binance = await stack.enter_async_context(SimulatedExchange(listed=listed))

    def weights() -> list[float]:
        return [e.at_ms for e in binance.journal.since() for _ in range(e.weight)]

    weight = Window("weight", 60, 8_000)
    limits = Limits(1_000, 8_000, windows=(weight,))
    symbols = ("BTC/USDT", "ETH/USDT")
    yield Rule("simulated", limits, weight, symbols, weights), binance.url
    yield await spoken(stack, "bybit", 12, 5_000, ("BTC/USDT", "BTC/USDT:USDT"))
    coins = tuple(f"{coin}/USD" for coin in KRAKEN_COINS)
    yield await spoken(stack, "kraken", 6, 8_000, coins)


async def spoken(
    stack: AsyncExitStack, name: str, limit: int, period_ms: int, symbols: tuple[str, ...]
) -> tuple[Rule, str]:
    """A venue that counts requests."""
    server = Spoken(name)
    address = await stack.enter_async_context(serving(Venue(name, always=server)))
    window = Window("requests", limit, period_ms)
    return Rule(name, Limits(limit, period_ms), window, symbols, lambda: server.arrivals), address


async def test_no_venue_counts_too_much_and_none_is_left_idle(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        opened = [each async for each in open_venues(stack)]
        for rule, _ in opened:
            await rule.give_work(database)
        environment = {
            "COLLECTOR_MONGO_URI": mongo_uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(tmp_path),
            "COLLECTOR_EXCHANGE_URLS": json.dumps(
                {rule.exchange_id: address for rule, address in opened}
            ),
            # Small pages, so that this process has time to note every arrival when it happens.
            "COLLECTOR_API__ADAPTER": "simulated",
            "COLLECTOR_API__PAGE_SIZE": "100",
        }
        for _ in range(WORKERS):
            await stack.enter_async_context(program("workers", **environment))
        for rule, _ in opened:
            await eventually(rule.is_over, f"{rule.exchange_id} was asked long enough", 60)
        for rule, _ in opened:
            rule.check()
