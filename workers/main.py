"""A worker process from start to end: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs
from collector.clock import SystemClock
from collector.connectors.limiter import Limiter
from collector.connectors.ticker_board import TickerBoard
from collector.jobs.freezing import Freezing
from collector.jobs.lease import LeaseTerms
from collector.jobs.queue import JobQueue
from collector.keys import ApiKeys
from collector.market.timeframe import Timeframe
from collector.mongo.client import Database
from collector.mongo.schema import require_current
from collector.reports.gap_rule import MAX_GAP_PCT
from collector.reports.source_check import SAMPLES
from collector.reports.source_reports import SourceReports
from collector.store.copies import Copies
from collector.store.store import Store
from workers.handlers.backfill import Backfill, GapBackfill
from workers.handlers.count import count
from workers.handlers.from_trades import FromTrades
from workers.handlers.gap_scan import GapScan
from workers.handlers.incremental import Incremental
from workers.handlers.listings import Listings
from workers.handlers.markets import MarketsRefresh
from workers.handlers.registry import HandlerRegistry
from workers.handlers.tickers import TickersSnapshot
from workers.handlers.trades import TradesIncremental
from workers.handlers.upkeep import Compact, FullScan, TailRefresh
from workers.handlers.verify_source import VerifySource
from workers.metrics_port import metrics_port
from workers.runtime import Worker, WorkerConfig
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.settings import Settings

_log = logs.get("workers")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to the settings."""

    concurrency: int | None = None
    exchanges: Sequence[str] = ()
    until_idle: bool = False


async def work(settings: Settings, uri: str, options: Options) -> None:
    """Runs one worker until a signal drains it."""
    config = WorkerConfig(
        # Unique for every start: a restarted worker must not pass for its former self.
        worker_id=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}",
        concurrency=options.concurrency or settings.worker.concurrency,
        exchanges=options.exchanges or settings.worker.exchanges,
        poll_seconds=settings.worker.poll_seconds,
        patience=settings.worker.token_patience_seconds,
        until_idle=options.until_idle,
    )
    secret = settings.api_keys
    keys = ApiKeys.parse(secret.get_secret_value() if secret else None)
    async with (
        metrics_port(settings.worker.metrics_host, settings.worker.metrics_port, keys) as figures,
        Database(uri, settings.mongo_db) as database,
        Limiter(database, use_global=settings.global_limit is not None) as limiter,
    ):
        await database.reach()
        await require_current(database)
        store = Store(settings.data_root, copies=_copies(settings))
        venues = Venues(
            database,
            limiter,
            store,
            urls=settings.addresses,
            patience=config.patience,
            clock=SystemClock(),
            timeout_ms=settings.api.timeout_ms,
            page_sizes=settings.api.page_sizes,
            keyring=settings.keyring,
        )
        async with venues:
            worker = Worker(
                database,
                limiter,
                all_handlers(
                    venues,
                    store,
                    database,
                    recovery_days=settings.quality.gap_recovery_days,
                    max_gap_pct=settings.quality.max_gap_pct,
                    samples=settings.quality.sanity_check_samples,
                ),
                config,
                terms=LeaseTerms(settings.worker.lease_ttl_ms),
                metrics_address=figures,
            )
            drain_on_signals(worker)
            _log.info(
                "worker_started",
                worker=config.worker_id,
                concurrency=config.concurrency,
                metrics=figures,
            )
            await worker.run()
        _log.info("worker_stopped", worker=config.worker_id)


def _copies(settings: Settings) -> Copies:
    longer = tuple(Timeframe.parse(name) for name in settings.resample.tfs)
    return Copies(longer, settings.storage.tail_days)


def all_handlers(
    venues: Venues,
    store: Store,
    database: Database,
    *,
    recovery_days: int = 7,
    max_gap_pct: float = MAX_GAP_PCT,
    samples: int = SAMPLES,
) -> HandlerRegistry:
    """Every type of job this program can run."""
    queue = JobQueue(database)
    gaps = GapScan(store, queue, database.server_clock, recovery_days)
    listings = Listings(venues, queue, Freezing(database))
    return HandlerRegistry(
        {
            "compact": Compact(store, gaps, max_gap_pct),
            "count": count,
            "full_scan": FullScan(store, gaps, max_gap_pct),
            "gap_scan": gaps,
            "tail_refresh": TailRefresh(store),
            "markets_refresh": MarketsRefresh(venues, listings),
            "ohlcv_incremental": Incremental(venues),
            "ohlcv_backfill": Backfill(venues, gaps),
            "ohlcv_from_trades": FromTrades(venues),
            "gap_backfill": GapBackfill(venues),
            "tickers_snapshot": TickersSnapshot(venues, TickerBoard(database)),
            "trades_incremental": TradesIncremental(venues),
            "verify_source": VerifySource(venues, store, SourceReports(database), samples),
        }
    )


def drain_on_signals(worker: Worker) -> None:
    """The first SIGTERM or SIGINT drains; a second one means it."""
    loop = asyncio.get_running_loop()
    asked = False

    def on_signal(number: int) -> None:
        nonlocal asked
        if asked:
            # Leases expire by themselves and every write is fenced: nothing needs tidying up.
            os._exit(128 + number)
        asked = True
        _log.info("draining", signal=signal.Signals(number).name)
        worker.drain()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
