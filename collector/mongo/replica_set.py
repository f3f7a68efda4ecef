"""Makes a mongod that has just started the writable primary of a replica set of one."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pymongo import AsyncMongoClient
from pymongo.errors import OperationFailure

from collector.errors import MongodFailed
from collector.mongo.own_password import INTERNAL_SOURCE, INTERNAL_USER, USER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pymongo.asynchronous.database import AsyncDatabase

NAME = "collector"

_NOT_YET_INITIALIZED = 94
# The configuration was still being read when it was requested, or is being changed: retry.
_SETTLING = frozenset({23, 109})
_AUTHENTICATION_FAILED = 18
_USER_EXISTS = 51003
_POLL_SECONDS = 0.01


class PortTaken(MongodFailed):
    """Another process listens on this mongod's port."""


async def become_primary(port: int, data: Path, password: str) -> None:
    """Returns once the mongod on `data` takes writes at `port`, under that very address.

    The set is initiated on the first start. A member's address is part of its configuration, so
    after a change of port the node finds itself removed from its own set and is put back. Then the
    user that everyone else logs in as has this password, whatever it had before.
    """
    client: AsyncMongoClient[dict[str, Any]] = AsyncMongoClient(
        "127.0.0.1",
        port,
        directConnection=True,
        serverSelectionTimeoutMS=5_000,
        username=INTERNAL_USER,
        password=password,
        authSource=INTERNAL_SOURCE,
    )
    async with client:
        admin = client.admin
        await _check_identity(admin, data)
        while not (hello := await admin.command("hello")).get("isWritablePrimary"):
            if "setName" not in hello:
                with _tolerating(_SETTLING):
                    await _configure(admin, f"127.0.0.1:{port}")
            await asyncio.sleep(_POLL_SECONDS)
        await _ensure_user(admin, password)


async def _ensure_user(admin: AsyncDatabase[dict[str, Any]], password: str) -> None:
    try:
        await admin.command("createUser", USER, pwd=password, roles=["root"])
    except OperationFailure as error:
        if error.code != _USER_EXISTS:
            raise
        await admin.command("updateUser", USER, pwd=password)


async def _check_identity(admin: AsyncDatabase[dict[str, Any]], data: Path) -> None:
    try:
        options = await admin.command("getCmdLineOpts")
    except OperationFailure as error:
        if error.code != _AUTHENTICATION_FAILED:
            raise
        raise PortTaken("another mongod answers at this port") from error
    if Path(options["parsed"].get("storage", {}).get("dbPath", "")) != data:
        raise PortTaken("another mongod answers at this port")


async def _configure(admin: AsyncDatabase[dict[str, Any]], address: str) -> None:
    """Gives the set this address as its one member. Safe to repeat while the node settles."""
    member = {"_id": 0, "host": address}
    config: dict[str, Any] | None = None
    with _tolerating({_NOT_YET_INITIALIZED}):
        config = (await admin.command("replSetGetConfig"))["config"]
    if config is None:
        await admin.command("replSetInitiate", {"_id": NAME, "members": [member]})
    elif [each["host"] for each in config["members"]] != [address]:
        moved = {**config, "version": config["version"] + 1, "members": [member]}
        # Forced: a node outside its set is not primary, and only a primary may reconfigure
        # normally.
        await admin.command("replSetReconfig", moved, force=True)


@contextmanager
def _tolerating(codes: Collection[int]) -> Iterator[None]:
    try:
        yield
    except OperationFailure as error:
        if error.code not in codes:
            raise
