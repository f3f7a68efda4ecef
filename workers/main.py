"""A worker process from start to end: the only place where its parts are put together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector import logs
from collector.clock import SystemClock
from collector.connectors.limiter import Limiter
from collector.connectors.session_lease import SessionTerms
from collector.durations import HOUR_MS
from collector.exchanges.fxcm.settings import FxcmStreamSettings
from collector.keys import ApiKeys
from collector.lease_terms import LeaseTerms
from collector.market.timeframe import Timeframe
from collector.mongo.client import Database
from collector.mongo.schema import require_current
from collector.mongo.schema_watch import leaving_newer_schema
from collector.operations.exchange_access import ExchangeAccess
from collector.operations.wishes import WishKeeper
from collector.store.copies import Copies
from collector.store.store import Store
from collector.streams.tick_health import PollBounds
from workers.all_handlers import all_handlers
from workers.metrics_port import metrics_port
from workers.runtime import Worker, WorkerConfig
from workers.session_keeper import SessionKeeper
from workers.tries import Tries
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from collector.publication.publisher import RedisPublisher
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
        networks=settings.history.networks,
        poll_seconds=settings.worker.poll_seconds,
        patience=settings.worker.token_patience_seconds,
        tries=Tries(settings.api.max_retries),
        lasting_after_ms=round(settings.worker.lasting_after_hours * HOUR_MS),
        until_idle=options.until_idle,
        keep_deleted_days=settings.worker.keep_deleted_days,
        data_root=settings.data_root,
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
        if settings.history.networks:
            await _ensure_apply_jobs(database, settings)
        store = Store(settings.data_root, copies=_copies(settings))
        sessions = SessionKeeper(
            database,
            config.worker_id,
            SystemClock(),
            lacking=ExchangeAccess.of(settings, database, limiter, config.patience).lacking,
            terms=SessionTerms(settings.worker.lease_ttl_ms, settings.worker.session_logout_ms),
        )
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
            sessions=sessions,
            sections={"fxcm": settings.fxcm},
        )
        # Exchanges are closed first, so that a session is logged out when its lease is freed.
        async with publishing(settings, database, store) as publisher, sessions, venues:
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
                    history=settings.history.terms,
                    publisher=publisher,
                    snap_intervals=settings.snap_intervals,
                    poll_bounds=_poll_bounds(settings),
                    until_idle=options.until_idle,
                ),
                config,
                terms=LeaseTerms(settings.worker.lease_ttl_ms),
                metrics_address=figures,
                sessions=sessions,
                wishes=WishKeeper(database, store.storage),
                publisher=publisher,
            )
            drain_on_signals(worker)
            _log.info(
                "worker_started",
                worker=config.worker_id,
                concurrency=config.concurrency,
                metrics=figures,
            )
            async with leaving_newer_schema(database, worker.drain):
                await worker.run()
        _log.info("worker_stopped", worker=config.worker_id)


@asynccontextmanager
async def publishing(
    settings: Settings, database: Database, store: Store
) -> AsyncIterator[RedisPublisher | None]:
    """The publication to Redis, None when no Redis is configured."""
    if settings.redis_url is None:
        yield None
        return
    from collector.publication.opening import publication

    stream = settings.fxcm.stream if settings.fxcm else FxcmStreamSettings()
    async with publication(
        settings.redis_url,
        database,
        store,
        backoff=stream.backoff.redis,
        async_supervisor=stream.async_supervisor,
    ) as publisher:
        yield publisher


async def _ensure_apply_jobs(database: Database, settings: Settings) -> None:
    from collector.operations.history_events import ensure_apply_jobs

    await ensure_apply_jobs(database, settings.history.terms)


def _copies(settings: Settings) -> Copies:
    longer = tuple(Timeframe.parse(name) for name in settings.resample.tfs)
    return Copies(longer, settings.storage.tail_days)


def _poll_bounds(settings: Settings) -> dict[str, PollBounds]:
    """FXCM's own, where it is configured."""
    if settings.fxcm is None:
        return {}
    stream = settings.fxcm.stream
    return {"fxcm": PollBounds(stream.poll_seconds_m1, stream.poll_seconds_m5)}


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
