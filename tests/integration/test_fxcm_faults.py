"""What happens to FXCM's session when its process, its server or its worker fails."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from collector.connectors.registry import ConnectorRegistry
from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin
from collector.exchanges.fxcm.interpreter import find_interpreter
from collector.jobs.states import State
from collector.operations import connected_jobs, connectors
from tests.support.fxcm.collecting import DAY, FIRST_MS, SHORT_TERMS, USER, FxcmCollecting
from tests.support.fxcm.fixtures import PASSWORD
from tests.support.fxcm.living import gone, is_alive
from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path

    from collector.jobs.job import Job

START, END = FIRST_MS + 4 * DAY, FIRST_MS + 6 * DAY


def is_done(job: Job) -> bool:
    return job.state is State.SUCCESS


async def busy(fx: FxcmCollecting) -> Job:
    """A backfill whose first page the server does not answer."""
    fx.server.change(hold_history=True)
    job = await fx.backfill(START, END)
    await fx.server.seen("history")
    return job


async def test_a_call_that_hangs_is_ended_and_asked_again(fx: FxcmCollecting) -> None:
    async with fx.worker():
        fx.time_out(1.0)
        job = await busy(fx)
        first = fx.server.session.pid
        await fx.until_state("DISCONNECTED")
        fx.time_out(60.0)
        fx.server.held.clear()
        fx.server.change(hold_history=False)
        await fx.until(job, is_done)
        shown = await fx.until_state("STREAM")
        assert shown.holder == "ann"
        await gone(first)
    assert fx.server.second_logins == 0


@pytest.mark.parametrize("end", ["abort", "SESSION_LOST"])
async def test_a_session_that_ends_is_opened_again(fx: FxcmCollecting, end: str) -> None:
    async with fx.worker():
        job = await busy(fx)
        first = fx.server.session.pid
        if end == "abort":
            fx.server.say("abort")
        else:
            fx.server.say("status", status=end, ready_after=0)
        await fx.until_state("DISCONNECTED")
        fx.server.held.clear()
        fx.server.change(hold_history=False)
        await fx.until(job, is_done)
        await fx.until_state("STREAM")
        assert not is_alive(first)
    assert (fx.server.count("login"), fx.server.second_logins) == (2, 0)


@pytest.mark.parametrize("what", ["abort", "lost"])
async def test_a_login_from_elsewhere_is_noticed_and_answered_with_another(
    fx: FxcmCollecting, fxcm_python: Path, tmp_path: Path, what: str
) -> None:
    fx.server.change(second_login=what)
    environ = {**os.environ, "COLLECTOR_FXCM_PYTHON": str(fxcm_python)}
    interpreter = await find_interpreter(environ)
    elsewhere = FxcmClient(interpreter, tmp_path / "elsewhere", environ, lambda: 60.0)
    async with fx.worker(), elsewhere:
        job = await busy(fx)
        ours = fx.server.session.pid
        fx.server.change(hold_history=False)
        await elsewhere.login(FxcmLogin(USER, PASSWORD, fx.server.url))
        await gone(ours)
        # Ours logs in again, which ends the other one.
        await fx.until(job, is_done)
        await until(lambda: not elsewhere.is_logged_in, "the other session has ended")
    assert fx.server.second_logins == 2


async def test_a_worker_that_drains_passes_the_session_on(fx: FxcmCollecting) -> None:
    async with AsyncExitStack() as first:
        await first.enter_async_context(fx.worker("ann"))
        job = await fx.backfill(START, END)
        await fx.until(job, is_done)
        async with fx.worker("bob"):
            assert (await fx.session()).holder == "ann"
            await first.aclose()
            taken = await until(lambda: _held_by(fx, "bob"), "bob holds the session")
            assert taken
            job = await fx.backfill(START, END, "XAU/USD")
            await fx.until(job, is_done)
            shown = await fx.session()
            assert (shown.holder, shown.fence) == ("bob", 2)
    assert (fx.server.count("login"), fx.server.count("logout")) == (2, 2)
    assert fx.server.second_logins == 0
    assert (await fx.session()).reason == "the worker has stopped"


async def _held_by(fx: FxcmCollecting, name: str) -> bool:
    return (await fx.session()).holder == name


async def test_jobs_of_the_exchange_are_claimed_by_its_holder_alone(fx: FxcmCollecting) -> None:
    async with fx.worker("ann"), fx.worker("bob"):
        jobs = [
            await fx.backfill(START, END, symbol) for symbol in ("EUR/USD", "XAU/USD", "USD/JPY")
        ]
        for job in jobs:
            await fx.until(job, is_done)
        holder = (await fx.session()).holder
    runs = await fx.database.job_runs.find({})
    assert {run["worker_id"] for run in runs} == {holder}
    assert (fx.server.count("login"), fx.server.second_logins) == (1, 0)


async def test_a_lease_that_cannot_be_renewed_ends_the_session_and_the_jobs_go_back(
    fx: FxcmCollecting,
) -> None:
    fx.terms = SHORT_TERMS
    async with fx.worker():
        job = await busy(fx)
        first = fx.server.session.pid
        # Somebody else has it, as far as the database tells.
        await fx.database.connectors.update_one(
            {"exchange_id": "fxcm"}, {"$set": {"session.holder": "bob", "session.fence": 99}}
        )
        await gone(first)
        await until(lambda: not fx.server.sessions, "the server has noticed")
        fx.server.held.clear()
        fx.server.change(hold_history=False)
        # Bob is not there, so the lease is free a while later.
        done = await fx.until(job, is_done)
        assert done.document["attempt"] <= 1
        shown = await fx.session()
        assert (shown.holder, shown.fence) == ("ann", 100)
    assert fx.server.second_logins == 0


async def test_without_the_sdk_one_line_says_so_and_another_worker_does_the_work(
    fx: FxcmCollecting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = os.environ["COLLECTOR_FXCM_PYTHON"]
    monkeypatch.setitem(os.environ, "COLLECTOR_FXCM_PYTHON", str(tmp_path / "none"))
    async with fx.worker("ann"):
        job = await fx.backfill(START, END)

        async def it_is_reported() -> bool:
            return "COLLECTOR_FXCM_PYTHON" in (await fx.session()).reason

        await until(it_is_reported, "the connector says what is missing")
        assert (await fx.queue.get(job.id)).state is State.QUEUED
        monkeypatch.setitem(os.environ, "COLLECTOR_FXCM_PYTHON", python)
        async with fx.worker("bob"):
            await fx.until(job, is_done)
            assert (await fx.session()).holder == "bob"


async def test_a_refused_password_needs_a_person_and_is_tried_once(fx: FxcmCollecting) -> None:
    fx.server.change(refuse="Incorrect user name or password")
    fx.stream = {}
    async with fx.worker():
        jobs = [await fx.backfill(START, END, name) for name in ("EUR/USD", "XAU/USD")]
        for job in jobs:
            failed = await fx.until(job, lambda found: found.state is State.FAILED)
            assert "Incorrect user name or password" in failed.document["stats"]["last_error"]

        async def is_shown() -> bool:
            shown = await fx.session()
            return shown.state == "DISCONNECTED" and "Incorrect" in shown.reason

        await until(is_shown, "the session shows why it is disconnected")
    assert fx.server.count("login") == 1


async def test_a_paused_connector_logs_out_so_that_a_person_can_log_in(fx: FxcmCollecting) -> None:
    async with fx.worker():
        job = await fx.backfill(START, END)
        await fx.until(job, is_done)
        await connectors.pause(fx.database, "fxcm")
        await until(lambda: not fx.server.sessions, "the session is logged out")
        shown = await fx.until_state("DISCONNECTED")
        assert (shown.holder, shown.reason) == (None, "the connector is paused or removed")
        await ConnectorRegistry(fx.database).resume("fxcm")
        job = await fx.backfill(START, END, "XAU/USD")
        await fx.until(job, is_done)
    assert (fx.server.count("logout"), fx.server.second_logins) == (2, 0)


async def test_a_removed_connector_has_no_session(fx: FxcmCollecting) -> None:
    async with fx.worker():
        job = await fx.backfill(START, END)
        await fx.until(job, is_done)
        await connected_jobs.remove_connector(fx.database, "fxcm", cascade=True)
        await until(lambda: not fx.server.sessions, "the session is logged out")
    assert fx.server.count("logout") == 1


async def test_a_worker_that_stops_when_idle_does_not_wait_for_a_session_it_cannot_have(
    fx: FxcmCollecting, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "COLLECTOR_FXCM_PYTHON", str(tmp_path / "none"))
    await fx.backfill(START, END)
    async with fx.worker(until_idle=True) as worker:
        await until(worker._draining.is_set, "it stops by itself")
