"""Everything that was ever written to the jobs of a database, from MongoDB's own log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bson import ObjectId, Timestamp

    from collector.mongo.client import Database


@dataclass(frozen=True)
class JobDiary:
    """The replica set's log from one moment on: whatever lasted a millisecond is still in it."""

    database: Database
    since: Timestamp

    @classmethod
    async def begin(cls, database: Database) -> JobDiary:
        answer = await database.raw.command("hello")
        return cls(database, answer["lastWrite"]["opTime"]["ts"])

    async def writes(self) -> list[tuple[ObjectId, dict[str, Any]]]:
        """Every write in order: the job, and the fields it set by their dotted names."""
        log = self.database.raw.client["local"]["oplog.rs"]
        ours = {"ts": {"$gt": self.since}, "ns": f"{self.database.raw.name}.jobs"}
        return [
            (entry["o2"]["_id"], _fields_set(entry["o"]))
            async for entry in log.find(ours)
            if entry["op"] == "u"
        ]

    async def values(self, name: str) -> list[Any]:
        """All that a field was ever set to."""
        return [fields[name] for _, fields in await self.writes() if name in fields]

    async def check(self) -> None:
        """No job failed, was set aside or paused (one that is done pauses itself), and no cursor
        went back."""
        last: dict[ObjectId, int] = {}
        for job, fields in await self.writes():
            assert fields.get("state") != "failed", f"{job} failed: {fields}"
            paused = fields.get("status") == "paused" and fields.get("state") != "success"
            assert not paused, f"{job} was paused: {fields}"
            since_ms = fields.get("cursor.since_ms", fields.get("cursor", {}).get("since_ms"))
            if since_ms is not None:
                assert since_ms >= last.get(job, 0), f"the cursor of {job} went back: {fields}"
                last[job] = since_ms

    async def check_no_kill_was_counted(self) -> None:
        counted = [kills for kills in await self.values("kills") if kills]
        assert not counted, f"{len(counted)} deaths counted where nobody died"


def _fields_set(change: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """The log keeps the difference, nested, or the whole new document when that is shorter."""
    if not prefix and "diff" not in change:
        return change
    diff = change.get("diff", change)
    fields = {
        f"{prefix}{name}": value
        for kind in ("i", "u")
        for name, value in diff.get(kind, {}).items()
    }
    for name, inner in diff.items():
        if name.startswith("s") and isinstance(inner, dict):
            fields |= _fields_set(inner, f"{prefix}{name[1:]}.")
    return fields
