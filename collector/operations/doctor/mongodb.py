"""MongoDB: whether it answers, is a replica set, keeps what is written, and has our schema."""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymongo.errors import PyMongoError

from collector.errors import (
    ConfigError,
    DatabaseRefused,
    DatabaseUnavailable,
    HomeInUse,
    MongodFailed,
    MongodMissing,
)
from collector.mongo.home import running
from collector.mongo.schema import VERSION, current_version
from collector.operations.doctor.finding import Finding, ok, problem, warning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mongo.client import Database, Document
    from collector.settings import Settings

AREA = "mongodb"
TESTED = (6, 0)
"""The oldest version that the tests run on."""
SLOW_MS = 50.0
"""A request buys its token first, and waits this long for it."""
_ASKED = 5


@dataclass(frozen=True, slots=True)
class Hole:
    """A fault of MongoDB that anyone who reaches its port can use, without a login."""

    name: str
    effect: str
    begins: tuple[int, ...]
    """The first version that has it."""
    mended: tuple[tuple[int, ...], ...]
    """The first version without it, for each series that was mended."""
    needs_zlib: bool = False
    needs_members: bool = False
    """Whether only replica sets of several members have it."""

    def is_in(self, version: Sequence[int]) -> bool:
        """A series that was never mended has it as long as a newer series was mended."""
        number = tuple(version[:3])
        own = [fix for fix in self.mended if fix[:2] == number[:2]]
        return self.begins <= number < max(own or self.mended)


HOLES = (
    Hole(
        "CVE-2025-14847",
        "gives parts of its memory away",
        begins=(3, 6),
        mended=((4, 4, 30), (5, 0, 32), (6, 0, 27), (7, 0, 28), (8, 0, 17), (8, 2, 3)),
        needs_zlib=True,
    ),
    Hole(
        "CVE-2026-9740",
        "can be made to crash",
        begins=(7, 0),
        mended=((7, 0, 35), (8, 0, 24), (8, 2, 10), (8, 3, 3)),
    ),
    Hole(
        "CVE-2026-118383",
        "can be made to crash after an election, or perhaps to run foreign code",
        begins=(4, 4),
        mended=((4, 4, 32), (5, 0, 35), (6, 0, 30), (7, 0, 48), (8, 0, 37), (8, 3, 16), (9, 0, 7)),
        # The only member of a set has nobody to catch up with.
        needs_members=True,
    ),
)


def unreachable(settings: Settings, error: Exception) -> Finding:
    """Why there is no database, and what helps."""
    embedded = settings.mongo_uri is None
    helps = {
        DatabaseRefused: "correct mongo_user and its password",
        HomeInUse: "wait until that process has ended, or stop it",
        MongodMissing: "do one of these",
        MongodFailed: f"read {settings.home / 'logs' / 'mongod.log'}",
        ConfigError: "correct the settings",
        DatabaseUnavailable: (
            f"read {settings.home / 'logs' / 'mongod.log'}"
            if embedded
            else "start it, or correct mongo_uri; workers and API continue by themselves"
        ),
    }
    return problem(AREA, str(error), helps.get(type(error), "correct the settings"))


async def mongodb(database: Database, settings: Settings) -> list[Finding]:
    """Everything about a database that has answered."""
    hello = await database.fairly(database.raw.command, "hello")
    return [
        *await _server(database, settings),
        replica_set(hello),
        *await _writes(database),
        await _round_trip(database),
        await _schema(database, settings),
    ]


async def _server(database: Database, settings: Settings) -> list[Finding]:
    admin = database.raw.client.admin
    build = await database.fairly(admin.command, "buildInfo")
    version = build["versionArray"]
    words = f"MongoDB {build['version']}, {_place(database, settings)}"
    agreed = await database.fairly(admin.command, "hello", compression=["zlib"])
    findings = holes(
        version,
        has_zlib="zlib" in agreed.get("compression", []),
        members=len(agreed.get("hosts", [])),
    )
    if tuple(version[:2]) < TESTED:
        oldest = ".".join(map(str, TESTED))
        older = warning(AREA, f"{words}: older than {oldest}", f"upgrade it to {oldest} or newer")
        return [older, *findings]
    return [ok(AREA, words), *findings]


def holes(version: Sequence[int], *, has_zlib: bool, members: int) -> list[Finding]:
    """A warning for each known hole of a server."""
    findings = []
    for hole in HOLES:
        if not hole.is_in(version) or (hole.needs_zlib and not has_zlib):
            continue
        if hole.needs_members and members < 2:
            continue
        release = ".".join(map(str, version[:3]))
        fixes = ", ".join(".".join(map(str, fix)) for fix in hole.mended)
        helps = f"upgrade it to {fixes} or newer in its series"
        if hole.needs_zlib:
            helps += ", or start it with --networkMessageCompressors snappy,zstd"
        words = f"MongoDB {release} has {hole.name}: without a login it {hole.effect}"
        findings.append(warning(AREA, words, helps))
    return findings


def _place(database: Database, settings: Settings) -> str:
    if settings.mongo_uri is not None:
        hosts = ", ".join(f"{host}:{port}" for host, port in sorted(database.raw.client.nodes))
        return f"at {hosts}"
    owner = running(settings.home)
    if owner is None or owner.pid == os.getpid():
        return f"embedded in {settings.home}, started for this check"
    return f"embedded in {settings.home}, run by {owner.purpose} (pid {owner.pid})"


def replica_set(hello: Document) -> Finding:
    """By what the server says of itself."""
    name, members = hello.get("setName"), hello.get("hosts", [])
    if name is None:
        helps = "start mongod with --replSet and run rs.initiate()"
        words = "not a replica set: change streams and retried writes need one"
        return problem(AREA, words, helps)
    if not hello.get("isWritablePrimary"):
        return problem(AREA, f"replica set {name} has no primary", "rs.status() names the members")
    alone = "one member, so no failover" if len(members) == 1 else f"{len(members)} members"
    return ok(AREA, f"replica set {name}: {alone}, {hello.get('me')} is primary")


async def _writes(database: Database) -> list[Finding]:
    """Writes, and waits as every write here does: for a majority, and for the journal."""
    if not await current_version(database):
        return []
    mark = {"_id": "doctor"}
    began = time.monotonic()
    try:
        await database.system.update_one(mark, [{"$set": {"at": "$$NOW"}}], upsert=True)
        await database.system.delete_one(mark)
    except DatabaseRefused as error:
        return [problem(AREA, f"cannot write: {error}", "grant readWrite on the database")]
    except (DatabaseUnavailable, PyMongoError) as error:
        words = f"no majority confirms a write with journal: {error}"
        return [problem(AREA, words, "rs.status(): start the members that are down")]
    took_ms = (time.monotonic() - began) * 1000 / 2
    return [ok(AREA, f"a majority confirmed a write with journal in {took_ms:,.0f} ms")]


async def _round_trip(database: Database) -> Finding:
    taken = []
    for _ in range(_ASKED):
        began = time.monotonic()
        await database.read_server_clock()
        taken.append((time.monotonic() - began) * 1000)
    median = statistics.median(taken)
    if median > SLOW_MS:
        words = f"round trip {median:,.0f} ms: every request to an exchange waits for one"
        return warning(AREA, words, "run workers near MongoDB")
    return ok(AREA, f"round trip {median:,.1f} ms")


async def _schema(database: Database, settings: Settings) -> Finding:
    found = await current_version(database)
    if found == VERSION:
        return ok(AREA, f"schema {found}, which this program knows")
    if found > VERSION:
        words = f"schema {found} is newer than {VERSION}, which this program knows"
        return problem(AREA, words, "upgrade this program")
    if settings.mongo_uri is None:
        return ok(AREA, f"schema {found}; collector up migrates it to {VERSION}")
    return problem(AREA, f"schema {found}, this program needs {VERSION}", "collector migrate up")
