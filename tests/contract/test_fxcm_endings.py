"""How sidecars end: no hang, no death and no lost owner leaves a session or a process behind."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.fxcm.failures import SessionLost, SidecarLost
from collector.exchanges.fxcm.process import Timeouts
from collector.exchanges.fxcm.wire import SidecarError
from tests.support.fxcm.fixtures import PASSWORD
from tests.support.fxcm.living import gone, is_alive
from tests.support.fxcm.raw_sidecar import raw_sidecar
from tests.support.fxcm.server import NOON_MS
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.fxcm.fixtures import Desk
    from tests.support.fxcm.server import FakeServer

LOGIN = {"user": "trader", "password": "secret", "connection": "Demo"}
HISTORY = {"instrument": "EUR/USD", "timeframe": "m1", "from_ms": NOON_MS, "to_ms": NOON_MS}


async def test_a_lease_that_passes_logs_out_and_exits(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("hello")
        await sidecar.ask("login", url=fxcm_server.url, **LOGIN)
        sidecar.send("ping", lease_ms=200)  # and not a word more
        assert await sidecar.ended() == 0
    assert fxcm_server.count("logout") == 1
    assert ["error", "lease_expired", "logging out"] in [event[:3] for event in sidecar.events]


async def test_a_later_line_renews_the_lease_also_while_the_sdk_is_busy(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(hold_history=True)
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("hello")
        await sidecar.ask("login", url=fxcm_server.url, **LOGIN)
        asked = sidecar.send("history", ready_ms=1000, lease_ms=1000, **HISTORY)
        sidecar.send("ping")
        await fxcm_server.seen("history")
        loop = asyncio.get_running_loop()
        after_the_first_lease = loop.time() + 2
        while loop.time() < after_the_first_lease:
            await sidecar.ask("ping")
            await asyncio.sleep(0.05)
        fxcm_server.release_history()
        assert "result" in await sidecar.answer(asked)


async def test_a_line_that_is_no_request_does_not_renew_the_lease(
    fxcm_python: Path, tmp_path: Path
) -> None:
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("ping", lease_ms=300)
        while sidecar.process.returncode is None:
            sidecar.send_bytes(b'{"lease_ms": 60000}\n')
            await asyncio.sleep(0.05)
        assert sidecar.process.returncode == 0


async def test_the_end_of_standard_input_logs_out_and_exits(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("hello")
        await sidecar.ask("login", url=fxcm_server.url, **LOGIN)
        assert sidecar.process.stdin is not None
        sidecar.process.stdin.close()
        assert await sidecar.ended() == 0
    assert fxcm_server.count("logout") == 1


@pytest.mark.parametrize("busy_with", ["history", "login"])
async def test_the_end_comes_also_in_the_middle_of_a_call_of_the_sdk(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer, busy_with: str
) -> None:
    fxcm_server.change(hold_history=True, ask_for_session=busy_with == "login")
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("hello")
        if busy_with == "login":
            # Without a name the SDK waits for half a minute.
            sidecar.send("login", url=fxcm_server.url, **LOGIN)
            await sidecar.event("session", "TRADING_SESSION_REQUESTED")
        else:
            await sidecar.ask("login", url=fxcm_server.url, **LOGIN)
            sidecar.send("history", ready_ms=1000, **HISTORY)
            await fxcm_server.seen("history")
        assert sidecar.process.stdin is not None
        sidecar.process.stdin.close()
        await sidecar.ended()
    assert fxcm_server.count("logout") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_to_everyone_leaves_the_end_to_the_parent(
    fxcm_python: Path, tmp_path: Path, number: signal.Signals
) -> None:
    async with raw_sidecar(fxcm_python, tmp_path) as sidecar:
        await sidecar.ask("ping")
        sidecar.process.send_signal(number)
        assert await sidecar.ask("ping") == {"busy": None}


async def test_a_lost_lease_ends_the_session(fxcm: Desk) -> None:
    fxcm.lease_seconds = 6.0
    client = await fxcm.logged_in()
    pid = client.pid
    assert pid is not None
    fxcm.lease_seconds = 0.0
    await fxcm.server.seen("logout")
    await gone(pid)
    with pytest.raises(SidecarLost):
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    await client.logout()
    (end,) = fxcm.ends
    assert "the session lease has passed" in str(end.cause)
    assert any(
        isinstance(event, SidecarError) and event.kind == "lease_expired" for event in fxcm.events
    )


async def assert_a_fresh_one_works(fxcm: Desk) -> None:
    """What hung is gone, and the next login has a process of its own."""
    hung = (await fxcm.server.seen("gone")).pid
    await gone(hung)
    fxcm.server.change(silent=False, hold_history=False)
    client = await fxcm.logged_in()
    assert client.pid != hung
    assert len(await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)) == 1


async def test_a_sidecar_that_hangs_in_a_login_is_killed(fxcm: Desk) -> None:
    fxcm.server.change(silent=True)
    with pytest.raises(SidecarLost, match="no answer to login within 1 s"):
        await fxcm.client(timeouts=Timeouts(login=1.0)).login(fxcm.credentials())
    await assert_a_fresh_one_works(fxcm)


async def test_a_sidecar_that_hangs_in_history_is_killed(fxcm: Desk) -> None:
    fxcm.server.change(hold_history=True)
    client = await fxcm.logged_in(timeouts=Timeouts(history=1.0))
    with pytest.raises(SidecarLost, match="no answer to history within 1 s"):
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    await assert_a_fresh_one_works(fxcm)


async def test_a_sidecar_in_which_nothing_runs_any_more_is_killed(fxcm: Desk) -> None:
    fxcm.server.change(hold_history=True)
    fxcm.lease_seconds = 9.0
    client = await fxcm.logged_in(timeouts=Timeouts(ping=4.0))
    fxcm.server.say("freeze")
    with pytest.raises(SidecarLost, match="no answer to ping within 4 s"):
        await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    await assert_a_fresh_one_works(fxcm)


async def test_the_next_login_of_the_same_client_has_a_process_of_its_own(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    pid = client.pid
    await client.login(fxcm.credentials())
    assert client.pid not in (pid, None)
    assert [entry.what for entry in fxcm.server.journal] == ["login", "logout", "gone", "login"]


async def test_a_sidecar_that_crashes_fails_whoever_waits(fxcm: Desk) -> None:
    fxcm.server.change(hold_history=True)
    client = await fxcm.logged_in()
    asked = [
        asyncio.create_task(client.history("EUR/USD", "m1", NOON_MS, NOON_MS)) for _ in range(3)
    ]
    await fxcm.server.seen("history")
    fxcm.server.say("abort")
    for each in asked:
        with pytest.raises(SidecarLost, match="was killed by SIGABRT"):
            await each
    (end,) = fxcm.ends
    assert not end.expected
    assert any("printed by the SDK" in line for line in end.stderr)
    fxcm.server.change(hold_history=False)
    await client.login(fxcm.credentials())
    assert len(await client.history("EUR/USD", "m1", NOON_MS, NOON_MS)) == 1


@pytest.mark.parametrize("status", ["SESSION_LOST", "DISCONNECTED"])
async def test_a_lost_session_is_the_end_of_its_process(fxcm: Desk, status: str) -> None:
    fxcm.server.change(hold_history=True)
    client = await fxcm.logged_in()
    pid = client.pid
    assert pid is not None
    asked = asyncio.create_task(client.history("EUR/USD", "m1", NOON_MS, NOON_MS))
    await fxcm.server.seen("history")
    fxcm.server.say("status", status=status)
    with pytest.raises(SessionLost, match=status):
        await asked
    assert not is_alive(pid)
    with pytest.raises(SessionLost, match="not logged in"):
        await client.subscribe()


@pytest.mark.parametrize("manner", ["abort", "lost"])
async def test_a_second_login_elsewhere_ends_the_first(fxcm: Desk, manner: str) -> None:
    fxcm.server.change(second_login=manner)
    first, second = fxcm.client(), fxcm.client()
    await first.login(fxcm.credentials())
    pid = first.pid
    assert pid is not None
    await second.login(fxcm.credentials())
    await gone(pid)
    await fxcm.server.seen("gone")
    with pytest.raises(SidecarLost):
        await first.history("EUR/USD", "m1", NOON_MS, NOON_MS)
    (end,) = fxcm.ends
    assert isinstance(end.cause, SidecarLost if manner == "abort" else SessionLost)
    assert not end.expected
    assert len(await second.history("EUR/USD", "m1", NOON_MS, NOON_MS)) == 1


async def test_what_a_sidecar_has_started_goes_with_it(fxcm: Desk) -> None:
    client = await fxcm.logged_in()
    fxcm.server.say("spawn")
    child = (await fxcm.server.seen("spawned")).fields["child"]
    assert is_alive(child)
    await client.logout()
    await gone(child)
    assert fxcm.server.count("logout") == 1


async def test_a_cancelled_login_leaves_nothing(fxcm: Desk) -> None:
    fxcm.server.change(silent=True)
    login = asyncio.create_task(fxcm.client().login(fxcm.credentials()))
    pid = (await fxcm.server.seen("login")).pid
    login.cancel()
    with pytest.raises(asyncio.CancelledError):
        await login
    await gone(pid)


@asynccontextmanager
async def owner(
    fxcm_python: Path, home: Path, server: FakeServer, lease_seconds: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another process that holds the session."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.fxcm.owner"),
        *(fxcm_python, home, server.url, str(lease_seconds)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"logged in\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_parent_that_is_killed_leaves_no_session_and_no_process(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    async with owner(fxcm_python, tmp_path, fxcm_server, 600) as process:
        pid = (await fxcm_server.seen("login")).pid
        process.kill()
        await fxcm_server.seen("logout")
        await gone(pid)


async def test_a_parent_that_is_frozen_loses_the_session_with_its_lease(
    fxcm_python: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    async with owner(fxcm_python, tmp_path, fxcm_server, 6) as process:
        pid = (await fxcm_server.seen("login")).pid
        process.send_signal(signal.SIGSTOP)
        await fxcm_server.seen("logout")
        await gone(pid)


async def test_the_last_lines_of_a_dead_sidecar_hold_no_password_and_no_control_characters(
    fxcm: Desk,
) -> None:
    await fxcm.logged_in()
    fxcm.server.say("print", text=f"login(trader, {PASSWORD})\x1b[2J\x07 failed\n")
    fxcm.server.say("abort")
    await until(lambda: bool(fxcm.ends), "the end is noticed")
    [end] = fxcm.ends
    assert end.stderr[-1].endswith("login(trader, ***) [2J  failed")
    assert all(line.isprintable() for line in end.stderr)
