"""What was requested of each job, apart from how far it has come: enough to create it again.

Gap jobs are left out. Whoever creates jobs from these records compares the files with what was
requested, and creates jobs for the gaps.

Every statement that changes what is requested of a job also sets `requested_at`, so that one index
key tells whether anything has changed. Its value is MongoDB's logical clock, which never runs
backwards, whatever happens to the clock of its machine.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from collector.jobs import schedule as schedules
from collector.jobs import types
from collector.jobs.cursor import Cursor
from collector.jobs.states import LIVE
from collector.mongo.client import WAKE, Document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from bson import Timestamp

    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database

REQUESTED_INDEX = "requested"
REQUESTED: Document = {"requested_at": {"$exists": True}}
"""In a filter: jobs of which something was requested after this field was introduced."""
REQUESTED_NOW: Document = {"requested_at": "$$CLUSTER_TIME"}
"""In a statement that changes what is requested."""
CHANGED: Document = {"wake": WAKE, "updated_at": "$$NOW", **REQUESTED_NOW}
"""In a statement that does so from outside: workers notice it at once."""
RECORDED_AT_ONCE = 200
"""Decoding more documents in one go would hold up everything else in the process."""
_GONE_BY_THEMSELVES = tuple(
    row.name for row in types.TABLE.values() if row.span is types.Span.EXACT
)
_NEEDED = [
    "exchange_id",
    "type",
    "symbol",
    "timeframe",
    "schedule",
    "priority",
    "params",
    "status",
    "cursor",
    "progress.from_ms",
    "requested_since",
    "declared",
]


@dataclass(frozen=True, slots=True)
class JobWish:
    """One job as it was requested."""

    exchange_id: str
    type: str
    symbol: str | None
    timeframe: str | None
    schedule: Mapping[str, Any]
    priority: int
    params: Mapping[str, Any]
    status: str
    cursor: Mapping[str, Any]
    """As it was when this was recorded; it may have moved since."""
    begins_ms: int | None = None
    """Where the history begins, as the exchange answered; None when the job had not begun."""
    requested_since: int | None = None
    """Where the history was to begin; 0 is its first bar."""
    declared: Any = None
    """What the settings file declared about it."""

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """From a record; fields of a newer program are ignored."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})

    @property
    def at(self) -> Cursor:
        return Cursor.from_document(self.cursor)

    @property
    def usual_schedule(self) -> Schedule:
        return schedules.stored(dict(self.schedule), self.exchange_id, self.symbol or "")


def job_record(document: Mapping[str, Any]) -> dict[str, Any]:
    """What JobWish.read reads, from the job's own document."""
    return {
        "exchange_id": document["exchange_id"],
        "type": document["type"],
        "symbol": document.get("symbol"),
        "timeframe": document.get("timeframe"),
        "schedule": document.get("schedule") or {},
        "priority": document["priority"],
        "params": document.get("params") or {},
        "status": document["status"],
        "cursor": document.get("cursor") or {},
        "begins_ms": (document.get("progress") or {}).get("from_ms"),
        "requested_since": document.get("requested_since"),
        "declared": document.get("declared"),
    }


def without_progress(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what every page changes: what has to be recorded when it differs."""
    ends = {name: record["cursor"].get(name) for name in ("until_ms", "done")}
    return {**record, "cursor": ends}


async def job_records(database: Database) -> AsyncIterator[list[dict[str, Any]]]:
    """Every live job that somebody requested, in a fixed order, some at a time."""
    batches = database.jobs.batches(
        RECORDED_AT_ONCE,
        {"status": {"$in": sorted(LIVE)}, "type": {"$nin": _GONE_BY_THEMSELVES}},
        projection=_NEEDED,
        sort=[("unique_key", 1)],
        hint="unique_key",
    )
    async for documents in batches:
        yield [job_record(document) for document in documents]


async def newest_request(database: Database) -> Timestamp | None:
    """When something was last requested of any job. Reads one index key."""
    document = await database.jobs.find_one(
        REQUESTED,
        projection={"requested_at": 1},
        sort=[("requested_at", -1)],
        hint=REQUESTED_INDEX,
    )
    return None if document is None else document["requested_at"]


def is_recorded(job_type: str) -> bool:
    """Whether jobs of this type are recorded; gap jobs are not."""
    return job_type not in _GONE_BY_THEMSELVES
