"""FXCM's session among worker processes that are killed, stopped and drained: never two at once."""

from __future__ import annotations

import json
import signal
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.session_lease import ShownSession, shown_session
from collector.jobs.job import Cursor, Job, JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.series import Series
from collector.operations import connectors
from collector.store.store import Store
from tests.support.fxcm.collecting import (
    DAY,
    FIRST_MS,
    login_settings,
    stored_bars,
    true_bars,
)
from tests.support.fxcm.living import gone
from tests.support.processes import Process, program
from tests.support.until import until, until_job

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from collector.mongo.client import Database
    from tests.support.fxcm.server import FakeServer

LEASE_MS, LOGOUT_MS = 5_000, 2_000
START, END = FIRST_MS + 4 * DAY, FIRST_MS + 11 * DAY
EURUSD = Series.of("fxcm", "EUR/USD", "1m")


@dataclass
class FxcmFleet:
    """Worker processes, the server that counts their logins, and the lake."""

    database: Database
    server: FakeServer
    root: Path
    environment: dict[str, str]

    def worker(self) -> AbstractAsyncContextManager[Process]:
        return program("workers", **self.environment)

    async def session(self) -> ShownSession:
        connector = await ConnectorRegistry(self.database).get("fxcm")
        shown = shown_session(connector, await self.database.now_ms())
        assert shown is not None
        return shown

    async def held_by(self, worker: Process) -> bool:
        return f":{worker.pid}:" in ((await self.session()).holder or "")

    async def busy(self) -> Job:
        """A backfill whose first page the server holds back."""
        self.server.change(hold_history=True)
        cursor = Cursor(since_ms=START, until_ms=END)
        spec = JobSpec("fxcm", "ohlcv_backfill", "EUR/USD", "1m", cursor=cursor)
        job, _ = await JobQueue(self.database).add(spec)
        await self.server.seen("history")
        return job

    def answer_again(self) -> None:
        self.server.held.clear()
        self.server.change(hold_history=False)

    async def finished(self, job: Job) -> None:
        queue = JobQueue(self.database)
        await until_job(queue, job, lambda found: found.state is State.SUCCESS)
        stored = stored_bars(Store(self.root), EURUSD, START, END)
        assert stored == true_bars("EUR/USD", "m1", START, END)


@pytest.fixture
async def fleet(
    database: Database, mongo_uri: str, fxcm_server: FakeServer, fxcm_python: Path, tmp_path: Path
) -> AsyncIterator[FxcmFleet]:
    fxcm_server.change(now_ms=None, first_ms=FIRST_MS)
    await connectors.ensure(database, "fxcm", {"rate_limit": 10_000, "windows": ()})
    environment = {
        **login_settings(fxcm_python),
        "COLLECTOR_HOME": str(tmp_path / "home"),
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_DATA": str(tmp_path / "lake"),
        "COLLECTOR_EXCHANGE_URLS": json.dumps({"fxcm": fxcm_server.url}),
        "COLLECTOR_WORKER__LEASE_TTL_MS": str(LEASE_MS),
        "COLLECTOR_WORKER__SESSION_LOGOUT_MS": str(LOGOUT_MS),
    }
    yield FxcmFleet(database, fxcm_server, tmp_path / "lake", environment)
    for entry in fxcm_server.journal:
        await gone(entry.pid)


@asynccontextmanager
async def two_workers(fleet: FxcmFleet) -> AsyncIterator[tuple[Process, Process]]:
    """The first holds the session, the second stands by."""
    async with fleet.worker() as first:
        await until(lambda: fleet.held_by(first), "the first holds the session")
        async with fleet.worker() as second:
            await until(lambda: second.lines("worker_started"), "the second is up")
            yield first, second


async def test_a_killed_workers_session_ends_and_another_one_takes_over(fleet: FxcmFleet) -> None:
    async with two_workers(fleet) as (first, second):
        job = await fleet.busy()
        sidecar = fleet.server.session.pid
        first.signal(signal.SIGKILL)
        await first.ended()
        # Its input has ended, so it logs out without waiting for the lease.
        await gone(sidecar)
        fleet.answer_again()
        await until(lambda: fleet.held_by(second), "the second holds the session")
        await fleet.finished(job)
        assert (await fleet.session()).fence == 2
    assert (fleet.server.count("login"), fleet.server.second_logins) == (2, 0)


async def test_a_stopped_workers_session_ends_with_its_lease_and_it_does_no_harm_later(
    fleet: FxcmFleet,
) -> None:
    async with two_workers(fleet) as (first, second):
        job = await fleet.busy()
        sidecar = fleet.server.session.pid
        first.signal(signal.SIGSTOP)
        await gone(sidecar)
        fleet.answer_again()
        await until(lambda: fleet.held_by(second), "the second holds the session")
        await fleet.finished(job)
        first.signal(signal.SIGCONT)
        await until(lambda: first.lines("session_lease_lost"), "the first has noticed")
        assert await fleet.held_by(second)
        # What it does from here on it does without the session.
        second.signal(signal.SIGTERM)
        assert await second.ended() == 0
        await until(lambda: fleet.held_by(first), "the first takes over again")
    assert fleet.server.second_logins == 0


async def test_a_drained_worker_logs_out_before_the_next_one_logs_in(fleet: FxcmFleet) -> None:
    async with two_workers(fleet) as (first, second):
        job = await fleet.busy()
        first.signal(signal.SIGTERM)
        await until(lambda: first.lines("draining"), "it drains")
        # The call in hand is finished, and then it leaves.
        fleet.server.release_history()
        assert await first.ended() == 0
        await until(lambda: fleet.held_by(second), "the second holds the session")
        await fleet.finished(job)
    await until(lambda: fleet.server.count("logout") == 2, "both have logged out")
    assert (fleet.server.count("login"), fleet.server.second_logins) == (2, 0)
