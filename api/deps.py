"""What routes work with, put together once a process and handed to them by FastAPI."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads the annotation

from api.report_answers import ReportAnswers
from collector.connectors.registry import ConnectorRegistry
from collector.history.terms import HistoryTerms
from collector.jobs.counting import JobCounting
from collector.jobs.live_workers import LiveWorkers
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory
from collector.markets.book import MarketBook
from collector.markets.tickers import TickerBoard
from collector.operations.history_events import EventIntake
from collector.operations.history_reads import HistoryReads
from collector.reports.validation import Demands
from collector.streams.live_board import LiveBoard

if TYPE_CHECKING:
    from api.feed import ChangeFeed
    from collector.mongo.client import Database
    from collector.operations.market_desk import MarketDesk
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class Services:
    """The library as this process uses it."""

    database: Database
    store: Store
    desk: MarketDesk
    feed: ChangeFeed
    demands: Demands = field(default_factory=Demands)
    """The quality settings of reports."""
    history: HistoryTerms = field(default_factory=HistoryTerms)
    reports: ReportAnswers = field(default_factory=ReportAnswers)
    intake: EventIntake = field(init=False)
    history_reads: HistoryReads = field(init=False)
    registry: ConnectorRegistry = field(init=False)
    queue: JobQueue = field(init=False)
    counting: JobCounting = field(init=False)
    runs: RunHistory = field(init=False)
    book: MarketBook = field(init=False)
    board: TickerBoard = field(init=False)
    live: LiveBoard = field(init=False)
    workers: LiveWorkers = field(init=False)

    def __post_init__(self) -> None:
        for name, kind in (
            ("registry", ConnectorRegistry),
            ("queue", JobQueue),
            ("counting", JobCounting),
            ("runs", RunHistory),
            ("book", MarketBook),
            ("board", TickerBoard),
            ("live", LiveBoard),
            ("workers", LiveWorkers),
        ):
            object.__setattr__(self, name, kind(self.database))
        for name, of_history in (("intake", EventIntake), ("history_reads", HistoryReads)):
            made = of_history(self.database, self.store, self.history)
            object.__setattr__(self, name, made)

    async def now_ms(self) -> int:
        """The server's clock."""
        return await self.database.now_ms()


def services_of(request: Request) -> Services:
    found: Services = request.app.state.services
    return found


Parts = Annotated[Services, Depends(services_of)]
