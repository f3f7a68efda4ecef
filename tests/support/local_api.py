"""The API on a real port in this process, and a client that knows where it is."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from api.app import Door, create_app
from api.deps import Services
from api.feed import ChangeFeed
from api.main import Server
from collector.connectors.limiter import Limiter
from collector.exchanges.port import Market, Markets
from collector.history.terms import HistoryTerms
from collector.listening import address_of, listen
from collector.markets.book import MarketBook
from collector.mongo.client import Database
from collector.operations.exchange_access import ExchangeAccess
from collector.operations.market_desk import MarketDesk
from collector.store.store import Store
from migrations import runner
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

    from api.connection_bounds import UnreadConnections, WaitingConnections

LISTED = ("BTC/USDT", "ETH/USDT", "SOL/USDT")
TIMEFRAMES = ("1m", "5m", "1h", "1d")


@dataclass(frozen=True)
class Answer:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def code(self) -> str | None:
        """The problem's code."""
        return self.body.get("code") if isinstance(self.body, dict) else None


class Client:
    """Requests to one server. `key` goes along as a bearer."""

    def __init__(self, session: aiohttp.ClientSession, services: Services) -> None:
        self.session = session
        self.services = services

    async def __call__(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **options: Any
    ) -> Answer:
        headers = dict(options.pop("headers", {}))
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        if body is not None:
            options["json"] = body
        async with self.session.request(method, path, headers=headers, **options) as response:
            is_json = "json" in response.content_type
            content = await (response.json(content_type=None) if is_json else response.text())
            return Answer(response.status, response.headers, content)

    async def get(self, path: str, **options: Any) -> Answer:
        return await self("GET", path, **options)

    async def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return await self("POST", path, body, **options)


class _Quiet(Server):
    """Leaves the test run's signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(
    database: Database,
    root: Path,
    *,
    door: Door | None = None,
    urls: Mapping[str, str] | None = None,
    patience: float = 10.0,
    history: HistoryTerms | None = None,
    waiting: WaitingConnections | None = None,
    unread: UnreadConnections | None = None,
) -> AsyncIterator[Client]:
    """A server at work; everything of it has ended when the block does."""
    async with Limiter(database) as limiter:
        services = Services(
            database=database,
            store=Store(root),
            desk=MarketDesk(database, ExchangeAccess(database, limiter, patience, urls=urls or {})),
            feed=ChangeFeed(database),
            history=history or HistoryTerms(),
        )
        server = _Quiet(create_app(services, door or Door()), services, waiting, unread)
        sock = listen("127.0.0.1", 0)
        running = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            async with aiohttp.ClientSession(
                address_of(sock),
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=180),
            ) as session:
                await until(lambda: server.started, "the API has started")
                yield Client(session, services)
        finally:
            server.stop()
            await asyncio.wait_for(running, 120)
            sock.close()


async def know_markets(database: Database, exchange_id: str = "simulated") -> None:
    """What a `markets_refresh` would have written down."""
    pairs = [symbol.split("/") for symbol in LISTED]
    markets = tuple(Market(f"{base}/{quote}", base + quote, base, quote) for base, quote in pairs)
    await MarketBook(database).save(Markets(exchange_id, markets, TIMEFRAMES))


async def emptied(database: Database) -> None:
    """Resets it to its first state: faster than migrating another one."""
    kept = (database.connectors, database.jobs, database.job_runs, database.live, database.markets)
    for collection in kept:
        await collection.delete_many({})


@asynccontextmanager
async def fresh_database(uri: str) -> AsyncIterator[Database]:
    """A migrated database for the length of a module."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    async with Database(uri, name) as database:
        await database.read_server_clock()
        await runner.up(database)
        yield database
        await database.raw.client.drop_database(name)
