"""A whole collector of FXCM in this process: worker, store and the stand-in SDK."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import SystemClock
from collector.connectors.limiter import Limiter
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.session_lease import SessionTerms, ShownSession, shown_session
from collector.exchanges.fxcm import exchange
from collector.exchanges.fxcm.open_session import OpenSession
from collector.exchanges.fxcm.process import Timeouts
from collector.exchanges.fxcm.provider import PROVIDER
from collector.exchanges.fxcm.settings import FxcmSettings
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.operations import connectors
from collector.operations.exchange_access import ExchangeAccess
from collector.secrets import Keyring
from collector.store.store import Store
from tests.support.fxcm.fxcorepy import truth
from tests.support.fxcm.living import gone
from tests.support.until import until, until_job
from workers.all_handlers import all_handlers
from workers.runtime import Worker, WorkerConfig
from workers.session_keeper import SessionKeeper
from workers.venues import Venues

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from collector.market.series import Series
    from collector.mongo.client import Database
    from tests.support.fxcm.server import FakeServer

USER = "trader"
TERMS = SessionTerms(ttl_ms=15_000, logout_ms=500)
SHORT_TERMS = SessionTerms(ttl_ms=3_000, logout_ms=500)
"""For tests that wait until it has passed: a busy machine may be late with a renewal."""
FIRST_MS = 1_709_251_200_000  # 2024-03-01: ten days before clocks change in New York
HOUR = 3_600_000
DAY = 24 * HOUR
QUICK = {"base_seconds": 0.2, "max_seconds": 0.2, "jitter": 0.0}
"""The pause after a failure, for tests that want to see what comes after it."""
COLUMNS = ("ts", "o", "h", "l", "c", "v", "ask_o", "ask_h", "ask_l", "ask_c")
_EPOCH = datetime(1970, 1, 1)


def login_settings(python: Path) -> dict[str, str]:
    """The environment variables of FXCM."""
    return {
        "COLLECTOR_FXCM_PYTHON": str(python),
        "COLLECTOR_FXCM__USER": USER,
        "COLLECTOR_SECRET_FXCM": "correct horse",
    }


def true_bars(symbol: str, timeframe: str, from_ms: int, to_ms: int) -> list[tuple[Any, ...]]:
    """What the stand-in market was like, in the order of COLUMNS, bars that have ended."""
    now_ms = SystemClock().wall_ms()
    return [
        (
            round((bar.date - _EPOCH).total_seconds() * 1000),
            *(bar.bid_open, bar.bid_high, bar.bid_low, bar.bid_close, float(bar.volume)),
            *(bar.ask_open, bar.ask_high, bar.ask_low, bar.ask_close),
        )
        for bar in truth.bars(symbol, timeframe, from_ms, to_ms - 1000, now_ms)
    ]


def stored_bars(store: Store, series: Series, from_ms: int, to_ms: int) -> list[tuple[Any, ...]]:
    """The real bars of the lake, in the order of COLUMNS."""
    table = store.rows(series, from_ms, to_ms, columns=(*COLUMNS, "is_gap"))
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    gaps = table.column("is_gap").to_pylist()
    rows = zip(*columns, strict=True)
    return [row for row, gap in zip(rows, gaps, strict=True) if not gap]


@dataclass
class FxcmCollecting:
    """What a test holds in its hands."""

    database: Database
    server: FakeServer
    store: Store
    root: Path
    timeouts: Timeouts
    """Those of the next sidecar."""
    terms: SessionTerms = TERMS
    stream: dict[str, Any] = field(default_factory=lambda: {"history_backoff": QUICK})

    def time_out(self, seconds: float) -> None:
        """How long a call for history may take from now on."""
        object.__setattr__(self.timeouts, "history", seconds)

    @property
    def queue(self) -> JobQueue:
        return JobQueue(self.database)

    async def job(self, kind: str, symbol: str = "EUR/USD", frame: str = "1m", **more: Any) -> Job:
        spec = JobSpec("fxcm", kind, symbol, frame, **more)
        return (await self.queue.add(spec))[0]

    async def backfill(self, from_ms: int, to_ms: int, *subject: str) -> Job:
        cursor = Cursor(since_ms=from_ms, until_ms=to_ms)
        return await self.job("ohlcv_backfill", *subject, cursor=cursor)

    async def until(self, job: Job, satisfied: Callable[[Job], bool], seconds: float = 120) -> Job:
        return await until_job(self.queue, job, satisfied, seconds)

    async def session(self) -> ShownSession:
        connector = await ConnectorRegistry(self.database).get("fxcm")
        shown = shown_session(connector, await self.database.now_ms())
        assert shown is not None
        return shown

    async def until_state(self, state: str, seconds: float = 120) -> ShownSession:
        async def reached() -> ShownSession | None:
            found = await self.session()
            return found if found.state == state else None

        found: ShownSession = await until(reached, f"the session is {state}", seconds)
        return found

    @asynccontextmanager
    async def worker(self, name: str = "ann", **config: Any) -> AsyncIterator[Worker]:
        """A worker at work, drained at the end."""
        clock = SystemClock()
        section = FxcmSettings.model_validate({"user": USER, "stream": self.stream})
        access = {
            "urls": {"fxcm": self.server.url},
            "clock": clock,
            "sections": {"fxcm": section},
        }
        keyring = Keyring(home=self.root / name)
        async with Limiter(self.database) as limiter:
            sessions = SessionKeeper(
                self.database,
                name,
                clock,
                lacking=ExchangeAccess(
                    self.database, limiter, 0.25, **access, keyring=keyring
                ).lacking,
                terms=self.terms,
            )
            venues = Venues(
                self.database,
                limiter,
                self.store,
                patience=0.25,
                keyring=keyring,
                sessions=sessions,
                **access,
            )
            async with sessions, venues:
                worker = Worker(
                    self.database,
                    limiter,
                    all_handlers(venues, self.store, self.database),
                    WorkerConfig(name, poll_seconds=0.2, **config),
                    sessions=sessions,
                )
                running = asyncio.create_task(worker.run())
                try:
                    yield worker
                finally:
                    worker.drain()
                    await asyncio.wait_for(running, 120)


@pytest.fixture
async def fx(
    database: Database,
    fxcm_server: FakeServer,
    fxcm_python: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[FxcmCollecting]:
    """A connector for FXCM and what its workers need; a test starts those itself.

    The market is always open for the session's state, whatever day it is.
    """
    for name, value in login_settings(fxcm_python).items():
        monkeypatch.setitem(os.environ, name, value)
    monkeypatch.setattr(OpenSession, "is_market_open", True)
    # A search from the year 2000 on is for tests of the search.
    monkeypatch.setattr(exchange, "FIRST_MS", FIRST_MS - DAY)
    timeouts = Timeouts()
    monkeypatch.setattr(PROVIDER, "_timeouts", timeouts)
    fxcm_server.change(now_ms=None, first_ms=FIRST_MS)
    # Less than every job would need to be held up by it.
    await connectors.ensure(database, "fxcm", {"rate_limit": 10_000, "windows": ()})
    yield FxcmCollecting(database, fxcm_server, Store(tmp_path / "lake"), tmp_path, timeouts)
    for entry in fxcm_server.journal:
        await gone(entry.pid)
