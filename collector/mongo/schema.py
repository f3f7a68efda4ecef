"""The schema's version, and the refusal to work on another one.

`migrations` raises the version; every process that uses the database checks it first. A program
that is older than the database could undo what a newer one relies on, so it does not start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.errors import SchemaMismatch

if TYPE_CHECKING:
    from collector.mongo.client import Database

VERSION = 8
"""The newest migration this program knows. A test compares it with migrations/versions."""


async def current_version(database: Database) -> int:
    """The newest migration that has finished on this database; 0 for an empty one."""
    document = await database.system.find_one({"_id": "schema"})
    return int(document["version"]) if document else 0


async def require_current(database: Database) -> None:
    """Raises SchemaMismatch unless the database is exactly at our version."""
    found = await current_version(database)
    if found > VERSION:
        raise SchemaMismatch(
            f"the database is at schema {found}, this program knows {VERSION}: "
            "upgrade this program, it must not run on a newer schema"
        )
    if found < VERSION:
        raise SchemaMismatch(
            f"the database is at schema {found}, this program needs {VERSION}: "
            "run `collector migrate up`"
        )
