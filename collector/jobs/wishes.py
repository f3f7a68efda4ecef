"""What was requested of each job, apart from how far it has come: enough to create it again.

Gap jobs are left out. Whoever creates jobs from these records compares the files with what was
requested, and creates jobs for the gaps.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from collector.jobs import schedule as schedules
from collector.jobs import types
from collector.jobs.cursor import Cursor
from collector.jobs.states import LIVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.jobs.schedule import Schedule
    from collector.mongo.client import Database

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
    "requested_since",
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
    def of(cls, document: Mapping[str, Any]) -> Self:
        """From the job's own document."""
        return cls(
            exchange_id=document["exchange_id"],
            type=document["type"],
            symbol=document.get("symbol"),
            timeframe=document.get("timeframe"),
            schedule=document.get("schedule") or {},
            priority=document["priority"],
            params=document.get("params") or {},
            status=document["status"],
            cursor=document.get("cursor") or {},
            begins_ms=(document.get("progress") or {}).get("from_ms"),
            requested_since=document.get("requested_since"),
            declared=document.get("declared"),
        )

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """From a record; fields of a newer program are ignored."""
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def request(self) -> dict[str, Any]:
        """The record without what every page changes: what has to be recorded when it differs."""
        ends = {name: self.cursor.get(name) for name in ("until_ms", "done")}
        return {**self.record(), "cursor": ends}

    @property
    def at(self) -> Cursor:
        return Cursor.from_document(self.cursor)

    @property
    def usual_schedule(self) -> Schedule:
        return schedules.stored(dict(self.schedule), self.exchange_id, self.symbol or "")


async def job_wishes(database: Database) -> list[JobWish]:
    """Every live job that somebody requested, in a fixed order."""
    gone_by_themselves = [row.name for row in types.TABLE.values() if row.span is types.Span.EXACT]
    documents = await database.jobs.find(
        {"status": {"$in": sorted(LIVE)}, "type": {"$nin": gone_by_themselves}},
        projection=_NEEDED,
        batch_size=5_000,
    )
    wishes = [JobWish.of(document) for document in documents]
    return sorted(wishes, key=_order)


def _order(wish: JobWish) -> tuple[str, str, str, str]:
    return wish.exchange_id, wish.type, wish.symbol or "", wish.timeframe or ""
