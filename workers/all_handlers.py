"""Every type of job this program can run, with its handler.

A handler is imported and made when the first job of its type runs: most workers run a few types,
and all of them together take longer to import than a short job takes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from collector.history.terms import HistoryTerms
from collector.jobs import types
from collector.reports.gap_rule import MAX_GAP_PCT
from collector.reports.source_check import SAMPLES
from workers.handlers.registry import HandlerRegistry, MadeLate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.mongo.client import Database
    from collector.publication.publisher import RedisPublisher
    from collector.store.store import Store
    from collector.streams.publisher import Publisher
    from collector.streams.tick_health import PollBounds
    from workers.handlers.gap_scan import GapScan
    from workers.handlers.registry import Handler
    from workers.venues import Venues


def all_handlers(
    venues: Venues,
    store: Store,
    database: Database,
    *,
    recovery_days: int = 7,
    max_gap_pct: float = MAX_GAP_PCT,
    samples: int = SAMPLES,
    history: HistoryTerms | None = None,
    snap_intervals: Mapping[str, float] | None = None,
    poll_bounds: Mapping[str, PollBounds] | None = None,
    publisher: RedisPublisher | None = None,
    until_idle: bool = False,
) -> HandlerRegistry:
    """Without a `publisher` nothing goes to Redis."""
    make = _Makers(
        venues,
        store,
        database,
        recovery_days=recovery_days,
        max_gap_pct=max_gap_pct,
        samples=samples,
        terms=history or HistoryTerms(),
        snap_intervals=snap_intervals or {},
        poll_bounds=poll_bounds or {},
        publisher=publisher,
        until_idle=until_idle,
    )
    makers = {
        types.COMPACT.name: make.compact,
        types.FULL_SCAN.name: make.full_scan,
        types.GAP_SCAN.name: lambda: make.gaps,
        types.HISTORY_APPLY.name: make.history_apply,
        types.TAIL_REFRESH.name: make.tail_refresh,
        types.MARKETS_REFRESH.name: make.markets_refresh,
        types.OHLCV_INCREMENTAL.name: make.incremental,
        types.OHLCV_BACKFILL.name: make.backfill,
        types.OHLCV_FROM_TRADES.name: make.from_trades,
        types.GAP_BACKFILL.name: make.gap_backfill,
        types.PRICE_STREAM.name: make.price_stream,
        types.TICKERS_SNAPSHOT.name: make.tickers_snapshot,
        types.TRADES_INCREMENTAL.name: make.trades_incremental,
        types.VERIFY_SOURCE.name: make.verify_source,
    }
    return HandlerRegistry({name: MadeLate(maker) for name, maker in makers.items()})


@dataclass(kw_only=True)
class _Makers:
    """What handlers are made of, and how each is made."""

    venues: Venues = field(kw_only=False)
    store: Store = field(kw_only=False)
    database: Database = field(kw_only=False)
    recovery_days: int
    max_gap_pct: float
    samples: int
    terms: HistoryTerms
    snap_intervals: Mapping[str, float]
    poll_bounds: Mapping[str, PollBounds]
    publisher: RedisPublisher | None
    until_idle: bool

    @cached_property
    def gaps(self) -> GapScan:
        from workers.handlers.gap_scan import GapScan

        return GapScan(self.store, self.database, self.recovery_days)

    def backfill(self) -> Handler:
        from workers.handlers.backfill import Backfill

        return Backfill(self.venues, self.gaps)

    def gap_backfill(self) -> Handler:
        from workers.handlers.gap_backfill import GapBackfill

        return GapBackfill(self.venues)

    def from_trades(self) -> Handler:
        from workers.handlers.from_trades import FromTrades

        return FromTrades(self.venues)

    def incremental(self) -> Handler:
        from workers.handlers.incremental import Incremental

        return Incremental(self.venues, publisher=self.publisher)

    def trades_incremental(self) -> Handler:
        from collector.operations.history_events import EventIntake
        from workers.handlers.trades import TradesIncremental

        intake = EventIntake(self.database, self.store, self.terms)
        return TradesIncremental(self.venues, intake)

    def tickers_snapshot(self) -> Handler:
        from collector.markets.tickers import TickerBoard
        from workers.handlers.tickers import TickersSnapshot

        return TickersSnapshot(self.venues, TickerBoard(self.database))

    def markets_refresh(self) -> Handler:
        from collector.jobs.freezing import Freezing
        from workers.handlers.listings import Listings, MarketsRefresh

        listings = Listings(self.venues, self.database, Freezing(self.database))
        return MarketsRefresh(self.venues, listings)

    def price_stream(self) -> Handler:
        from collector.streams.live_board import LiveBoard
        from workers.handlers.price_stream import PriceStream, elsewhere, no_context

        if self.until_idle:
            return elsewhere
        publisher = self.publisher
        publishers: list[Publisher] = [LiveBoard(self.database)]
        if publisher is not None:
            publishers.append(publisher)
        return PriceStream(
            self.venues,
            self.database,
            publishers,
            intervals=self.snap_intervals,
            context=no_context if publisher is None else publisher.heartbeat_context,
            bounds=self.poll_bounds,
        )

    def history_apply(self) -> Handler:
        from workers.handlers.history_apply import HistoryApply

        return HistoryApply(self.database, self.store, self.terms)

    def verify_source(self) -> Handler:
        from collector.reports.source_reports import SourceReports
        from workers.handlers.verify_source import VerifySource

        reports = SourceReports(self.database)
        return VerifySource(self.venues, self.store, reports, self.samples)

    def compact(self) -> Handler:
        from workers.handlers.upkeep import Compact

        return Compact(self.store, self.gaps, self.max_gap_pct)

    def full_scan(self) -> Handler:
        from workers.handlers.upkeep import FullScan

        return FullScan(self.store, self.gaps, self.max_gap_pct)

    def tail_refresh(self) -> Handler:
        from workers.handlers.upkeep import TailRefresh

        return TailRefresh(self.store)
