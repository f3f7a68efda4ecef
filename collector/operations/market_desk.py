"""Whether an exchange, a symbol and a timeframe exist, loading the markets when they are unknown.

Markets are usually in the book, stored by a `markets_refresh` job. For an exchange that was just
added the desk requests them itself, through the same limiter as every worker, and for ten seconds
at most: then it leaves the work to a job and the client has to come back. For an exchange whose
account allows one login a worker does it from the start, and the desk waits for that.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.errors import (
    InvalidInput,
    JobConflict,
    MarketsUnavailable,
    NotFound,
    RateLimited,
    RetryLater,
)
from collector.exchanges.registry import is_exclusive
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.operations import connected_jobs
from collector.operations.market_names import MarketNames

if TYPE_CHECKING:
    from collector.mongo.client import Database, Document
    from collector.operations.exchange_access import ExchangeAccess

PATIENCE_SECONDS = 10.0
COME_BACK_MS = 15_000
LOOK_SECONDS = 0.25


class MarketDesk(MarketNames):
    """Checks names in requests. Close it: a load may be under way."""

    def __init__(self, database: Database, access: ExchangeAccess) -> None:
        super().__init__(database)
        self._database = database
        self._registry = ConnectorRegistry(database)
        self._server_clock = database.server_clock
        self._access = access
        self._loading: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        tasks = list(self._loading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def market(self, exchange_id: str, symbol: str, *, field: str) -> Document:
        """The symbol's market; refuses one that the exchange does not list.

        MarketsUnavailable when its markets are not known and could not be loaded in time.
        """
        market = await super().market(exchange_id, symbol, field=field)
        if market is None:
            raise InvalidInput(field, "unknown_symbol", f"{exchange_id} has no markets at all")
        return market

    async def check_known_symbol(self, exchange_id: str, symbol: str, *, field: str) -> bool:
        """The same as far as the exchange's markets are known; False when they are not.

        Sends no request.
        """
        known = await MarketNames(self._database).market(exchange_id, symbol, field=field)
        return known is not None

    async def symbols(self, exchange_id: str) -> list[str]:
        """What the exchange lists, requested when it is unknown."""
        symbols = await self._book.symbols(exchange_id)
        if not symbols:
            await self._load(exchange_id)
            symbols = await self._book.symbols(exchange_id)
        return symbols

    async def _load(self, exchange_id: str) -> None:
        """Loads the markets; concurrent callers wait for the same load."""
        task = self._loading.get(exchange_id)
        if task is None:
            task = asyncio.create_task(self._ask(exchange_id), name=f"markets:{exchange_id}")
            self._loading[exchange_id] = task
            task.add_done_callback(self._loaded)
        done, _ = await asyncio.wait({task}, timeout=self._access.patience)
        try:
            if done:
                task.result()
                return
        except RetryLater as error:
            await self._leave_to_a_job(exchange_id)
            wait_ms = error.retry_after_ms or COME_BACK_MS
            raise MarketsUnavailable(
                f"the markets of {exchange_id} are not known yet: {error}", retry_after_ms=wait_ms
            ) from error
        await self._leave_to_a_job(exchange_id)
        raise MarketsUnavailable(
            f"the markets of {exchange_id} are not known yet: it did not answer in time",
            retry_after_ms=COME_BACK_MS,
        )

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._loading = {name: each for name, each in self._loading.items() if each is not task}
        if not task.cancelled():
            # Every waiting caller may have left; then the error is not worth a warning.
            task.exception()

    async def _ask(self, exchange_id: str) -> None:
        now_ms = self._server_clock.now_ms()
        stopped = (await self._registry.get(exchange_id)).stopped(now_ms)
        if stopped is not None:
            # Paused or banned: a token will not come in time.
            raise RateLimited(exchange_id, stopped.retry_at_ms - now_ms, stopped.reason)
        if is_exclusive(exchange_id):
            await self._asked_by_a_worker(exchange_id)
            return
        exchange, _ = await self._access.open(exchange_id)
        try:
            markets = await exchange.load_markets()
            await self._book.save(markets)
        finally:
            await exchange.close()

    async def _asked_by_a_worker(self, exchange_id: str) -> None:
        await self._leave_to_a_job(exchange_id)
        try:
            async with asyncio.timeout(self._access.patience):
                while not await self._book.symbols(exchange_id):
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise MarketsUnavailable("no worker has loaded them yet") from None

    async def _leave_to_a_job(self, exchange_id: str) -> None:
        """A `markets_refresh` that runs as soon as the exchange lets it."""
        refresh = JobSpec(exchange_id, types.MARKETS_REFRESH.name)
        # It may run by now, or be paused; or its connector is gone, and then it is not needed.
        with suppress(JobConflict, NotFound):
            [(job, made)] = await connected_jobs.add(self._database, [refresh])
            if not made:
                await connected_jobs.run(self._database, job.id)
