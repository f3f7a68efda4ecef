"""A private mongod for machines that have no MongoDB: started and stopped with its owner.

    owner (this process) --leash--> guardian --parent of--> mongod

The guardian (guardian.py) outlives the owner just long enough to shut mongod down, and brings
mongod back when it dies alone. The lock (home.py) is held by all three, so one home never has two
databases. Everything lives in the home:

    owner.lock     who owns the home               mongod/        the database
    mongod.json    where it answers, once ready    logs/          mongod.log and the one before
    mongod.port    the port to prefer next time    mongod.password   for its user only (0600)

POSIX only: it needs flock, pipes and sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pymongo.errors import ConnectionFailure, PyMongoError

from collector.clock import Clock, SystemClock
from collector.errors import ConfigError, MongodFailed
from collector.mongo import home as homes
from collector.mongo import mongod_log, replica_set
from collector.mongo.guardian import Orders
from collector.mongo.home import Announcement, HomeLock, Owner, announced_uri
from collector.mongo.leash import Leash
from collector.mongo.mongod_binary import find_mongod
from collector.mongo.own_password import ensure_password, password_path, with_login

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

__all__ = ["EmbeddedMongo", "announced_uri"]

# Below the ports that Linux and macOS give to outgoing connections. Inside that range a client that
# keeps trying a mongod which is just restarting can be given the very port, and connect to itself.
_PORTS = range(28_000, 32_768)
_PORT_TRIES = 3
_START_SECONDS = 120.0  # long: after a crash mongod first replays its journal
_POLL_SECONDS = 0.01
_LOG_LIMIT_BYTES = 64 * 2**20
_LOG_CHECK_SECONDS = 60.0


class EmbeddedMongo:
    """The running database of one home. It stops on `stop()`, or when this process is gone."""

    def __init__(
        self, home: Path, owner: Owner, lock: HomeLock, leash: Leash, port: int, clock: Clock
    ) -> None:
        self.port = port
        # Named as a replica set, not as a direct connection: while mongod restarts, the driver then
        # waits for a primary. Directly it would write to a node that is not one yet, and fail.
        self._address = f"mongodb://127.0.0.1:{port}/?replicaSet={replica_set.NAME}"
        self.uri = with_login(self._address, home)
        self._home = home
        self._owner = owner
        self._lock = lock
        self._leash = leash
        self._clock = clock

    @classmethod
    async def start(
        cls,
        home: Path,
        *,
        purpose: str,
        environ: Mapping[str, str] = os.environ,
        clock: Clock | None = None,
    ) -> Self:
        """Returns once the database of `home` takes writes.

        `purpose` is shown to a second owner. Every failure is a ConfigError (MongodMissing,
        MongodFailed, HomeInUse, or a home that cannot be written) with a remedy.
        """
        mongod = find_mongod(environ)
        try:
            return await cls._start(mongod, home, purpose, clock or SystemClock())
        except OSError as error:
            raise ConfigError(f"{home} cannot be the home of a database: {error}") from error

    @classmethod
    async def _start(cls, mongod: Path, home: Path, purpose: str, clock: Clock) -> Self:
        home = _prepare(home)
        started_at = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
        owner = Owner(os.getpid(), purpose, started_at.isoformat(timespec="seconds"))
        lock = await HomeLock.take(home, owner, clock)
        try:
            leash, port = await _launch(mongod, home, lock, clock)
        except BaseException:
            lock.sign_off()
            lock.release()
            raise
        running = cls(home, owner, lock, leash, port, clock)
        try:
            (home / "mongod.port").write_text(f"{port}\n")
            running.announce()
        except BaseException:
            await running.stop()
            raise
        return running

    def announce(self, *, dashboard: str | None = None) -> None:
        """Announces to other processes where the database, and a dashboard, listens.

        Without the password: who may use the database can read that in its own file.
        """
        homes.announce(
            self._home, Announcement(self._address, **asdict(self._owner), dashboard=dashboard)
        )

    def alive(self) -> bool:
        """False once mongod is no longer kept running: it kept dying, or its guardian was killed.

        A mongod that died and is being started again counts as alive; the driver waits for it.
        """
        return self._leash.held()

    async def stop(self) -> None:
        """Returns when mongod has shut down cleanly. Close clients first; may be called again."""
        if os.getpid() != self._owner.pid:
            return  # a forked child unwinding the owner's stack
        homes.withdraw(self._home)
        self._lock.sign_off()
        try:
            await self._leash.let_go(self._clock)
        finally:
            self._lock.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def _prepare(home: Path) -> Path:
    """Makes the home's directories, closed to other users."""
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    # Only a home that is all ours is closed: COLLECTOR_HOME may point at a shared folder such as
    # /srv.
    if not any(home.iterdir()):
        home.chmod(0o700)
    for name in ("mongod", "logs"):
        (home / name).mkdir(exist_ok=True)
        (home / name).chmod(0o700)
    return home


async def _launch(mongod: Path, home: Path, lock: HomeLock, clock: Clock) -> tuple[Leash, int]:
    """A guardian whose mongod is primary, and its port."""
    password = ensure_password(home)
    ports = _free_ports(_last_port(home))
    for _ in range(_PORT_TRIES):
        port = next(ports)
        leash = _fasten(mongod, home, port, lock)
        try:
            await _primary(leash, home, port, password)
        except replica_set.PortTaken:
            # A free port is only free until another process takes it.
            await leash.let_go(clock)
        except BaseException:
            await leash.let_go(clock)
            raise
        else:
            leash.call_ready()
            return leash, port
    raise MongodFailed(f"other programs took {_PORT_TRIES} ports in a row: try again")


def _fasten(mongod: Path, home: Path, port: int, lock: HomeLock) -> Leash:
    log = _log(home)
    with contextlib.suppress(FileNotFoundError):
        log.replace(f"{log}.1")
    command = {
        "--dbpath": str(home / "mongod"),
        "--port": str(port),
        "--bind_ip": "127.0.0.1",
        "--replSet": replica_set.NAME,
        "--oplogSize": "512",  # MB; by default a twentieth of the disk
        "--wiredTigerCacheSizeGB": "0.25",
        "--logpath": str(log),
        "--logRotate": "reopen",
        "--keyFile": str(password_path(home)),
        # mongod decompresses before it asks who is there, and versions with CVE-2025-14847 answer
        # with memory of theirs. Clients on this machine gain nothing by compression.
        "--networkMessageCompressors": "disabled",
    }
    parameters = (
        "diagnosticDataCollectionEnabled=false",  # up to 200 MB that are not used
        "enableLocalhostAuthBypass=false",  # no client without a password, ever
    )
    flags = ["--logappend", "--quiet", "--nounixsocket"]
    flags += [word for each in parameters for word in ("--setParameter", each)]
    argv = [str(mongod), *(word for option in command.items() for word in option), *flags]
    announcement = str(homes.announcement_path(home))
    orders = Orders(argv, str(log), announcement, lock.fd, _LOG_LIMIT_BYTES, _LOG_CHECK_SECONDS)
    return Leash(orders, home)


class _MongodEnded(MongodFailed):
    """mongod exited before it was ready, and the guardian with it."""


async def _primary(leash: Leash, home: Path, port: int, password: str) -> None:
    """Returns once mongod takes writes, or explains from its log why it never will."""
    log = _log(home)
    try:
        async with asyncio.timeout(_START_SECONDS):
            while True:
                await _listening(leash, port)
                with contextlib.suppress(ConnectionFailure):
                    return await replica_set.become_primary(port, home / "mongod", password)
    except (PyMongoError, TimeoutError, _MongodEnded) as error:
        if mongod_log.port_was_taken(log):
            raise replica_set.PortTaken(f"port {port} is taken") from error
        what = {
            TimeoutError: f"was not ready within {_START_SECONDS:.0f} seconds",
            _MongodEnded: "did not start",
        }.get(type(error), f"could not become primary ({error})")
        raise MongodFailed(f"mongod {what}: {mongod_log.last_words(log)} (log: {log})") from error


async def _listening(leash: Leash, port: int) -> None:
    while leash.held():
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(_POLL_SECONDS)
            continue
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return
    raise _MongodEnded


def _log(home: Path) -> Path:
    return home / "logs" / "mongod.log"


def _last_port(home: Path) -> int | None:
    """The port of the last run: with the same one, clients of that run find this one."""
    try:
        return int((home / "mongod.port").read_text())
    except (FileNotFoundError, ValueError):
        return None


def _free_ports(preferred: int | None) -> Iterator[int]:
    if preferred is not None and _is_free(preferred):
        yield preferred
    yield from filter(_is_free, random.sample(_PORTS, len(_PORTS)))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as mongod does
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
