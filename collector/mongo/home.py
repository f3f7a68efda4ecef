"""One owner per home: who may run its mongod, who does, and where it can be reached.

`owner.lock` carries a flock. The owner takes it and hands the descriptor to the guardian and to
mongod, so the kernel keeps it locked until the last of the three is gone, however they end. Its
text names the owner, for users and other processes.

`mongod.json` announces a database that is ready. It is valid only while the lock is held.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import weakref
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from collector.errors import HomeInUse
from collector.mongo.own_password import with_login

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path

    from collector.clock import Clock

# More than a dead owner's guardian ever needs to end its mongod (guardian.GRACE_SECONDS).
_CLOSING_SECONDS = 15.0
# A living owner is not waited for. But another process may hold the lock briefly to check it.
_LOOK_SECONDS = 0.25
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that runs a home's mongod, as it recorded itself."""

    pid: int
    purpose: str
    started_at: str  # ISO 8601, UTC: these files are read by people

    def alive(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # another user's process: it exists
            return True
        return True


@dataclass(frozen=True, slots=True)
class Announcement:
    """Where the database of a home listens, and for which purpose it runs."""

    uri: str
    pid: int
    purpose: str
    started_at: str
    dashboard: str | None = None


class HomeLock:
    """The right to run the one mongod of a home, until every copy of `fd` is closed."""

    def __init__(self, file: FileIO) -> None:
        self._file = file

    @property
    def fd(self) -> int:
        return self._file.fileno()

    @classmethod
    async def take(cls, home: Path, owner: Owner, clock: Clock) -> HomeLock:
        """Takes the lock, after a dead owner's database has closed. HomeInUse names a live one."""
        fd = os.open(home / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        file: FileIO = open(fd, "r+b", buffering=0)  # noqa: ASYNC230, SIM115 (no I/O, kept open)
        try:
            asked_at = clock.monotonic()
            while not _lock(fd, fcntl.LOCK_EX):
                _refuse_if_hopeless(home, clock.monotonic() - asked_at)
                await asyncio.sleep(_POLL_SECONDS)
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(asdict(owner)).encode(), 0)
        except BaseException:
            file.close()
            raise
        close_in_forked_children(file)
        return cls(file)

    def sign_off(self) -> None:
        """Removes the owner's name, so that new processes wait for the database to close."""
        if not self._file.closed:
            os.ftruncate(self.fd, 0)

    def release(self) -> None:
        """Closes this process's copy."""
        self._file.close()


_owners_alone: weakref.WeakSet[FileIO] = weakref.WeakSet()


def close_in_forked_children(file: FileIO) -> None:
    """Keeps `file` the owner's alone.

    Close-on-exec does that for programs. A child that is forked and never calls exec, as
    multiprocessing makes them, keeps every descriptor, and would keep a dead owner's home locked.
    """
    _owners_alone.add(file)


def _close_owners_files() -> None:
    for file in list(_owners_alone):
        file.close()


os.register_at_fork(after_in_child=_close_owners_files)


def announce(home: Path, announcement: Announcement) -> None:
    """Writes `mongod.json` whole or not at all."""
    draft = home / "mongod.json.new"
    draft.write_text(json.dumps(asdict(announcement)) + "\n")
    draft.replace(announcement_path(home))


def withdraw(home: Path) -> None:
    announcement_path(home).unlink(missing_ok=True)


def announcement_path(home: Path) -> Path:
    return home / "mongod.json"


def running(home: Path) -> Announcement | None:
    """What a running owner has announced; None when the home has no owner right now."""
    announcement = _read_announcement(home)
    return announcement if announcement and _is_locked(home) else None


def announced_uri(home: Path) -> str | None:
    """Where a running owner's database listens; None when the home has no owner right now."""
    announcement = running(home)
    return with_login(announcement.uri, home) if announcement else None


def announced_dashboard(home: Path) -> str | None:
    """Where a running owner's API listens; None when the home has no owner, or that has no API."""
    announcement = running(home)
    return announcement.dashboard if announcement else None


def _refuse_if_hopeless(home: Path, waited: float) -> None:
    owner = _read_owner(home)
    lives = owner is not None and owner.alive()
    if waited < (_LOOK_SECONDS if lives else _CLOSING_SECONDS):
        return
    if owner is None or not lives:
        raise HomeInUse(
            f"{home} is still held by a database that is shutting down:"
            f" try again, and see {home / 'logs' / 'mongod.log'}"
        )
    raise HomeInUse(
        f"{home} is in use by pid {owner.pid} ({owner.purpose}, since {owner.started_at})"
        f"{_addresses(home)}: stop it first, or set COLLECTOR_HOME to another directory"
    )


def _addresses(home: Path) -> str:
    if (announcement := _read_announcement(home)) is None:
        return ""
    dashboard = f", dashboard {announcement.dashboard}" if announcement.dashboard else ""
    return f", database {announcement.uri}{dashboard}"


def _is_locked(home: Path) -> bool:
    try:
        fd = os.open(home / "owner.lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _lock(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def _lock(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_owner(home: Path) -> Owner | None:
    with contextlib.suppress(TypeError):  # written by another version
        return Owner(**facts) if (facts := _read_facts(home / "owner.lock")) else None
    return None


def _read_announcement(home: Path) -> Announcement | None:
    with contextlib.suppress(TypeError):
        facts = _read_facts(announcement_path(home))
        return Announcement(**facts) if facts else None
    return None


def _read_facts(path: Path) -> dict[str, Any] | None:
    try:
        facts = json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None
    return facts if isinstance(facts, dict) else None
