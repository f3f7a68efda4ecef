"""What routes work with, put together once a process and handed to them by FastAPI."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotation

from collector.connectors.market_book import MarketBook
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.ticker_board import TickerBoard
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory
from collector.reports.validation import Demands

if TYPE_CHECKING:
    from api.feed import Feed
    from api.market_desk import MarketDesk
    from collector.mongo.client import Database
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The library as this process uses it."""

    database: Database
    store: Store
    desk: MarketDesk
    feed: Feed
    demands: Demands = field(default_factory=Demands)
    """What reports ask of a series."""
    registry: ConnectorRegistry = field(init=False)
    queue: JobQueue = field(init=False)
    runs: RunHistory = field(init=False)
    book: MarketBook = field(init=False)
    board: TickerBoard = field(init=False)
    workers: LiveWorkers = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (
            ("registry", ConnectorRegistry),
            ("queue", JobQueue),
            ("runs", RunHistory),
            ("book", MarketBook),
            ("board", TickerBoard),
            ("workers", LiveWorkers),
        ):
            object.__setattr__(self, name, kind(self.database))

    async def now_ms(self) -> int:
        """The server's clock; asks for it the first time."""
        try:
            return self.database.server_clock.now_ms()
        except RuntimeError:
            await self.database.read_server_clock()
            return self.database.server_clock.now_ms()


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Parts = Annotated[Services, Depends(services_of)]
