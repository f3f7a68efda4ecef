"""Whether an exchange, a symbol and a timeframe exist, asking the exchange when nobody knows yet.

Markets are usually in the book, put there by a `markets_refresh` job. For an exchange that was
added a moment ago the desk asks itself, through the same limiter as every worker, and for ten
seconds at most: then it leaves the work to a job and tells the client to come back.
"""

from __future__ import annotations

import asyncio
import difflib
from contextlib import suppress
from typing import TYPE_CHECKING

from api.problems import unprocessable
from collector.clock import Clock, SystemClock
from collector.connectors.gate import ConnectorPermit, GatedExchange
from collector.connectors.market_book import MarketBook
from collector.connectors.registry import ConnectorRegistry
from collector.errors import JobConflict, MarketsUnavailable, NotFound, RateLimited, RetryLater
from collector.exchanges.quirks import quirks_for
from collector.exchanges.registry import known_exchanges, near_matches, open_exchange
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.secrets import Keyring

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.connectors.limiter import Limiter
    from collector.mongo.client import Database, Document

PATIENCE_SECONDS = 10.0
COME_BACK_MS = 15_000
_SUGGESTIONS = 3


class MarketDesk:
    """Answers for names in requests. Close it: a load may be under way."""

    def __init__(
        self,
        database: Database,
        limiter: Limiter,
        *,
        urls: Mapping[str, str],
        patience: float = PATIENCE_SECONDS,
        clock: Clock | None = None,
        keyring: Keyring | None = None,
    ) -> None:
        self._book = MarketBook(database)
        self._registry = ConnectorRegistry(database)
        self._queue = JobQueue(database)
        self._server_clock = database.server_clock
        self._limiter = limiter
        self._urls = urls
        self._patience = patience
        self._clock = clock or SystemClock()
        self._keyring = keyring or Keyring()
        self._loading: dict[str, asyncio.Task[None]] = {}

    async def close(self) -> None:
        tasks = list(self._loading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def check_exchange(self, exchange_id: str) -> None:
        """Refuses an exchange that nobody can open, naming those that look like it."""
        if exchange_id not in known_exchanges():
            reason = f"there is no exchange called {exchange_id!r}"
            raise unprocessable(
                "exchange_id", "unknown_exchange", reason, near_matches(exchange_id)
            )

    async def check_connector(self, exchange_id: str) -> None:
        """Refuses an exchange without a connector: its jobs would never run."""
        self.check_exchange(exchange_id)
        try:
            await self._registry.get(exchange_id)
        except NotFound:
            reason = f"there is no connector {exchange_id!r} yet: POST /api/v1/connectors first"
            raise unprocessable("exchange_id", "no_connector", reason) from None

    async def check_series(
        self, exchange_id: str, symbol: str, timeframe: str, *, fields: tuple[str, str]
    ) -> None:
        """Refuses a symbol or timeframe that the exchange does not have.

        `fields` are the names of the two in the request. MarketsUnavailable when its markets are
        not known and could not be loaded in time.
        """
        market = await self.check_symbol(exchange_id, symbol, field=fields[0])
        served: list[str] = market["timeframes"]
        if served and timeframe not in served:
            near = difflib.get_close_matches(timeframe, served, n=_SUGGESTIONS, cutoff=0.4)
            reason = f"{exchange_id} has no timeframe {timeframe!r}, only {', '.join(served)}"
            raise unprocessable(fields[1], "unknown_timeframe", reason, near)

    async def check_symbol(self, exchange_id: str, symbol: str, *, field: str) -> Document:
        """The symbol's market; refuses one that the exchange does not list."""
        market = await self._book.find(exchange_id, symbol)
        if market is None:
            symbols = await self._known_symbols(exchange_id)
            market = await self._book.find(exchange_id, symbol)
            if market is None:
                near = await asyncio.to_thread(near_symbols, symbol, symbols)
                reason = f"{exchange_id} lists no {symbol!r}"
                raise unprocessable(field, "unknown_symbol", reason, near)
        return market

    async def check_known_symbol(self, exchange_id: str, symbol: str, *, field: str) -> None:
        """The same as far as the exchange's markets are known. Asks no exchange."""
        if await self._book.page(exchange_id, limit=1):
            await self.check_symbol(exchange_id, symbol, field=field)

    async def _known_symbols(self, exchange_id: str) -> list[str]:
        symbols = await self._book.symbols(exchange_id)
        if not symbols:
            await self._load(exchange_id)
            symbols = await self._book.symbols(exchange_id)
        return symbols

    async def _load(self, exchange_id: str) -> None:
        """Loads the markets; whoever asks meanwhile waits for the same load."""
        task = self._loading.get(exchange_id)
        if task is None:
            task = asyncio.create_task(self._ask(exchange_id), name=f"markets:{exchange_id}")
            self._loading[exchange_id] = task
            task.add_done_callback(self._loaded)
        done, _ = await asyncio.wait({task}, timeout=self._patience)
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
            # Everyone who waited may have left; an error nobody hears is not worth a warning.
            task.exception()

    async def _ask(self, exchange_id: str) -> None:
        now_ms = self._server_clock.now_ms()
        stopped = (await self._registry.get(exchange_id)).stopped(now_ms)
        if stopped is not None:
            # Paused or banned: a token will not come within anybody's patience.
            raise RateLimited(exchange_id, stopped.retry_at_ms - now_ms, stopped.reason)
        # Importing an exchange takes a moment, too long to hold up other requests.
        quirks = await asyncio.to_thread(quirks_for, exchange_id)
        permit = ConnectorPermit(self._limiter, self._registry, quirks, patience=self._patience)
        exchange = await asyncio.to_thread(
            open_exchange,
            exchange_id,
            permit,
            urls=self._urls,
            clock=self._clock,
            key=self._keyring.credentials(exchange_id),
        )
        try:
            markets = await GatedExchange(exchange, self._registry).load_markets()
            await self._book.save(markets)
        finally:
            await exchange.close()

    async def _leave_to_a_job(self, exchange_id: str) -> None:
        """A `markets_refresh` that runs as soon as the exchange lets it."""
        job, made = await self._queue.add(JobSpec(exchange_id, "markets_refresh"))
        if not made:
            # It may run by now, or have been paused: either way it is there, which is enough.
            with suppress(JobConflict, NotFound):
                await self._queue.run(job.id)


def near_symbols(symbol: str, symbols: Sequence[str]) -> tuple[str, ...]:
    """Known symbols that look like it: first those that differ only in case and separators."""

    def letters(text: str) -> str:
        return "".join(char for char in text.upper() if char.isalnum())

    wanted = letters(symbol)
    same = [known for known in symbols if letters(known) == wanted]
    alike = difflib.get_close_matches(symbol.upper(), symbols, n=_SUGGESTIONS, cutoff=0.6)
    return tuple(dict.fromkeys([*same, *alike]))[:_SUGGESTIONS]
