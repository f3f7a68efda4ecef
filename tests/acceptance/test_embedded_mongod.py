"""The embedded database against everything that can die around it. Real processes, real mongod."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import AsyncMongoClient, WriteConcern
from pymongo.errors import PyMongoError

from collector.clock import SystemClock
from collector.errors import ConfigError, HomeInUse, MongodFailed
from collector.mongo import embedded
from collector.mongo import home as homes
from collector.mongo.embedded import EmbeddedMongo, announced_uri
from collector.mongo.location import mongodb
from collector.mongo.own_password import with_login
from tests.acceptance.full_disk import filled, small_disk
from tests.support.until import until

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator

    from pymongo.asynchronous.collection import AsyncCollection

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")

# An owner with children of its own, one forked and one executed, which outlive it. On SIGINT it
# leaves a note and carries on, as a program that drains does.
OWNER = """
import asyncio, os, pathlib, signal, subprocess, sys
from collector.mongo.embedded import EmbeddedMongo

async def main(home):
    note = (home / "interrupted").touch
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, note)
    async with await EmbeddedMongo.start(home, purpose="a test's owner"):
        subprocess.Popen(["sleep", "600"], close_fds=False)
        if os.fork() == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.pause()
        (home / "settled").touch()
        await asyncio.Event().wait()

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "a user's höme"


@asynccontextmanager
async def owner_process(home: Path) -> AsyncIterator[Process]:
    """An owner in a process group of its own, its database ready; the group is gone afterwards."""
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(home), start_new_session=True
    )
    try:
        await until((home / "settled").exists)
        yield owner
    finally:
        with suppress(ProcessLookupError):
            os.killpg(owner.pid, signal.SIGKILL)
        await owner.wait()


@asynccontextmanager
async def documents(uri: str) -> AsyncIterator[AsyncCollection[dict[str, Any]]]:
    """A collection whose writes are as durable as MongoDB can make them."""
    async with AsyncMongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=120_000) as client:
        durable = WriteConcern(w="majority", j=True)
        yield client.get_database("test").get_collection("documents", write_concern=durable)


def mongod_pid(home: Path) -> int | None:
    text = (home / "mongod" / "mongod.lock").read_text().strip()
    return int(text) if text else None


def the_mongod(home: Path) -> int:
    pid = mongod_pid(home)
    assert pid is not None
    return pid


def is_running(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # The second: it went between open and read.
        return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def used_by_dead_children(pid: int) -> int:
    """The processor time of the children that a process has seen end: grows with each of them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])


def log_of(home: Path) -> str:
    return (home / "logs" / "mongod.log").read_text()


async def kill_mongod(home: Path) -> None:
    """Kills mongod and returns once that process is gone."""
    pid = the_mongod(home)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_running(pid))


async def test_a_second_start_has_the_first_ones_data_and_port(home: Path) -> None:
    async with await EmbeddedMongo.start(home, purpose="first") as first:
        assert first.alive()
        async with documents(first.uri) as written:
            await written.insert_one({"_id": 1})
            async with await written.watch() as changes:
                await written.insert_one({"_id": 2})
                assert (await anext(changes))["operationType"] == "insert"
    assert not first.alive()
    assert not mongod_pid(home)

    async with await EmbeddedMongo.start(home, purpose="second") as second:
        assert second.port == first.port
        async with documents(second.uri) as read:
            assert await read.count_documents({}) == 2
    for private in (home, home / "mongod", home / "logs"):
        assert private.stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(home / "logs")) == ["mongod.log", "mongod.log.1"]


async def test_a_taken_port_is_left_to_whoever_has_it(home: Path) -> None:
    async with await EmbeddedMongo.start(home, purpose="first") as first, documents(first.uri) as d:
        await d.insert_one({"_id": 1})
    # It hangs up on everybody who speaks MongoDB's language to it, as any other server would.
    stranger = await asyncio.start_server(lambda _, out: out.close(), "127.0.0.1", first.port)
    async with stranger, await EmbeddedMongo.start(home, purpose="moved") as moved:
        assert moved.port != first.port
        async with documents(moved.uri) as read:
            assert await read.find_one({"_id": 1})


async def test_a_port_that_is_lost_in_the_last_moment_costs_one_more_try(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as quicker:
        quicker.bind(("127.0.0.1", 0))
        lost = quicker.getsockname()[1]
        found = next(embedded._free_ports(None))
        monkeypatch.setattr(embedded, "_free_ports", lambda _: iter([lost, found]))
        async with await EmbeddedMongo.start(home, purpose="test") as mongo:
            assert mongo.port == found


async def test_a_killed_owner_takes_its_mongod_with_it(home: Path) -> None:
    async with owner_process(home) as owner:
        old = the_mongod(home)
        assert announced_uri(home)
        owner.kill()
        await owner.wait()
        # No pause: the newcomer has to wait for the old database to close by itself.
        async with await EmbeddedMongo.start(home, purpose="successor") as successor:
            assert not is_running(old)
            assert the_mongod(home) != old
            assert announced_uri(home) == successor.uri
    assert "did not shut down" not in (home / "logs" / "mongod.log.1").read_text()


async def test_ctrl_c_in_the_owners_terminal_does_not_reach_mongod(home: Path) -> None:
    async with owner_process(home) as owner:
        before = the_mongod(home)
        os.killpg(owner.pid, signal.SIGINT)
        await until((home / "interrupted").exists)
        assert os.getsid(before) not in (os.getsid(owner.pid), os.getsid(0))
        uri = announced_uri(home)
        assert uri is not None
        async with documents(uri) as d:
            await d.insert_one({})
        assert the_mongod(home) == before
        assert "guardian:" not in log_of(home)
        owner.kill()
        await until(lambda: not is_running(before))
    assert announced_uri(home) is None


@linux_only
async def test_a_killed_guardian_takes_mongod_with_it(home: Path) -> None:
    async with await EmbeddedMongo.start(home, purpose="test") as mongo:
        old = the_mongod(home)
        os.kill(parent_of(old), signal.SIGKILL)
        await until(lambda: not mongo.alive())
    # No pause here either: mongod holds the lock itself until it is gone.
    async with await EmbeddedMongo.start(home, purpose="successor"):
        assert not is_running(old)


async def test_a_killed_mongod_comes_back_with_everything_it_acknowledged(home: Path) -> None:
    async with await EmbeddedMongo.start(home, purpose="test") as mongo, documents(mongo.uri) as d:
        for number in range(50):
            await d.insert_one({"_id": number})
        first = the_mongod(home)
        await kill_mongod(home)
        # The same client, with nothing done to it.
        assert await d.count_documents({}) == 50
        await d.insert_one({"_id": 50})
        assert the_mongod(home) != first
        assert mongo.alive()
        assert f"mongod {first} was killed by SIGKILL" in log_of(home)


async def test_a_mongod_that_keeps_dying_is_started_again_after_growing_pauses(home: Path) -> None:
    async with await EmbeddedMongo.start(home, purpose="test") as mongo, documents(mongo.uri) as d:
        for _ in range(4):
            await kill_mongod(home)
            await until(lambda: is_running(mongod_pid(home) or 0))
        await d.insert_one({"_id": 1})
        assert "it is started again in 2 seconds" in log_of(home)
        assert announced_uri(home) is not None


@linux_only
async def test_a_mongod_that_a_full_disk_ended_is_back_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, megabytes=400) as mounted:
        if not mounted:
            pytest.skip("a small disk takes root to mount")
        home = disk / "home"
        async with (
            await EmbeddedMongo.start(home, purpose="test") as mongo,
            documents(mongo.uri) as d,
        ):
            await d.insert_one({"_id": 0})
            first = the_mongod(home)
            guardian = parent_of(first)
            with filled(disk):
                await write_until_dead(mongo.uri, first)
                for _ in range(3):
                    used = used_by_dead_children(guardian)
                    await until(
                        lambda used=used: used_by_dead_children(guardian) > used, seconds=60
                    )
            assert await d.count_documents({"_id": 0}) == 1
            await d.insert_one({"_id": 1})


async def write_until_dead(uri: str, pid: int) -> None:
    """Writes megabytes to a mongod until it has no room for its journal and ends."""
    async with AsyncMongoClient[dict[str, Any]](uri, serverSelectionTimeoutMS=100) as client:
        ballast = client.get_database("test").get_collection("ballast")
        while is_running(pid):
            with suppress(PyMongoError):
                await ballast.insert_one({"random": os.urandom(1 << 20)})


async def test_a_second_owner_is_told_who_the_first_is(home: Path) -> None:
    assert announced_uri(home) is None
    async with await EmbeddedMongo.start(home, purpose="collector up") as mongo:
        assert announced_uri(home) == mongo.uri
        mongo.announce(dashboard="http://127.0.0.1:8000/")
        said = json.loads((home / "mongod.json").read_text())
        assert (with_login(said["uri"], home), said["pid"]) == (mongo.uri, os.getpid())
        assert mongo.uri.split("@")[0] not in json.dumps(said)
        with pytest.raises(HomeInUse) as caught:
            await EmbeddedMongo.start(home, purpose="second")
        facts = (
            str(os.getpid()),
            "collector up",
            said["started_at"],
            said["uri"],
            "127.0.0.1:8000",
        )
        for fact in facts:
            assert fact in str(caught.value)
        assert announced_uri(home) == mongo.uri
    assert announced_uri(home) is None
    assert not (home / "mongod.json").exists()


async def test_programs_that_start_in_the_same_moment_share_one_database(home: Path) -> None:
    async with asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        entered = [
            group.create_task(stack.enter_async_context(mongodb(None, home, purpose)))
            for purpose in ("api", "worker", "worker")
        ]
        first, *others = [await each for each in entered]
        assert others == [first, first]


async def test_a_home_whose_owner_never_announces_its_database_is_in_use(home: Path) -> None:
    home.mkdir()
    owner = homes.Owner(os.getpid(), "a test", "2025-01-01T00:00:00+00:00")
    lock = await homes.HomeLock.take(home, owner, SystemClock())
    try:
        with pytest.raises(HomeInUse, match=f"in use by pid {os.getpid()}"):
            async with mongodb(None, home, "worker", patience=0.5):
                pass
    finally:
        lock.release()


async def test_a_log_that_grows_is_put_aside_while_mongod_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_LOG_LIMIT_BYTES", 20_000)
    monkeypatch.setattr(embedded, "_LOG_CHECK_SECONDS", 0.02)
    async with await EmbeddedMongo.start(home, purpose="test") as mongo:
        await until((home / "logs" / "mongod.log.1").exists)
        async with documents(mongo.uri) as d:
            await d.insert_one({})
        assert mongo.alive()
    assert "Shutting down" in log_of(home)  # mongod writes to the new one


async def test_a_mongod_that_cannot_start_says_why_and_leaves_the_home_free(
    home: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "mongod"
    broken.write_text(
        "#!/bin/sh\n"
        "echo 'mongod: error while loading shared libraries: libcurl.so.4: no such file' >&2\n"
        "exit 127\n"
    )
    broken.chmod(0o755)
    environ = {"COLLECTOR_MONGOD": str(broken)}
    for _ in range(2):
        with pytest.raises(MongodFailed, match=r"did not start: .*libcurl\.so\.4.*libcurl4"):
            await EmbeddedMongo.start(home, purpose="test", environ=environ)
    assert announced_uri(home) is None


async def test_a_home_that_cannot_be_one_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be the home of a database"):
        await EmbeddedMongo.start(tmp_path / "file" / "home", purpose="test")


async def test_a_start_that_is_cancelled_leaves_nothing_behind(home: Path) -> None:
    starting = asyncio.create_task(EmbeddedMongo.start(home, purpose="impatient"))
    await until(lambda: (home / "mongod" / "mongod.lock").exists() and mongod_pid(home))
    pid = the_mongod(home)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not is_running(pid)
