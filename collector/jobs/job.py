"""The job: a frozen picture of its document, and the specification of a new one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from collector.jobs import schedule as schedules
from collector.jobs import types
from collector.jobs.cursor import Cursor, CursorShape
from collector.jobs.params import Params
from collector.jobs.states import State, Status
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping

    from bson import ObjectId

__all__ = ["Cursor", "Job", "JobSpec", "RecoveredJob"]

_SETTINGS = ("status", "schedule", "priority", "params")
C = TypeVar("C", bound=CursorShape)
P = TypeVar("P", bound=Params)


@dataclass(frozen=True, slots=True)
class RecoveredJob:
    """What a job has beside its specification when it is created again after a loss."""

    status: Status = Status.ACTIVE
    progress: Mapping[str, Any] | None = None
    requested_since: int | None = None
    declared: Any = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be created. `params` belongs to its handler."""

    exchange_id: str
    type: str
    symbol: str | None = None
    timeframe: str | None = None
    schedule: schedules.Schedule | None = None
    priority: int | None = None
    cursor: CursorShape = field(default_factory=Cursor)
    params: Mapping[str, Any] = field(default_factory=dict)
    first_run_ms: int | None = None
    progress: Mapping[str, Any] | None = None
    """What is known when it is created, such as the answers that a silence was heard in."""
    recovered: RecoveredJob | None = None
    """Set when the job existed before, in a database that was lost."""

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1000:
            raise ValueError("priority must be between 0 and 1000")
        if self.timeframe is not None:
            Timeframe.parse(self.timeframe)

    @property
    def unique_key(self) -> str:
        """One live job per exchange, type, symbol, timeframe; for gap jobs the interval too."""
        parts = [self.exchange_id, self.type, self.symbol or "", self.timeframe or ""]
        row = types.find(self.type)
        if row is not None and row.span is types.Span.EXACT and isinstance(self.cursor, Cursor):
            parts += [str(self.cursor.since_ms), str(self.cursor.until_ms)]
        return "|".join(parts)

    @property
    def effective_schedule(self) -> schedules.Schedule:
        """The requested value, else the default of the type."""
        if self.schedule is not None:
            return self.schedule
        row = types.find(self.type)
        if row is None:
            return schedules.Once()
        return row.usual_schedule(self.exchange_id, self.symbol or "", self.timeframe)

    @property
    def effective_priority(self) -> int:
        if self.priority is not None:
            return self.priority
        row = types.find(self.type)
        return row.priority if row else types.DEFAULT_PRIORITY


@dataclass(frozen=True, slots=True)
class Job:
    """A job document as it was at one moment."""

    id: ObjectId
    exchange_id: str
    type: str
    symbol: str | None
    timeframe: str | None
    status: Status
    state: State
    schedule: schedules.Schedule
    priority: int
    next_run_at: int
    cursor: Cursor
    fence: int
    attempt: int
    params: Mapping[str, Any]
    document: Mapping[str, Any] = field(repr=False, compare=False)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Job:
        return cls(
            id=document["_id"],
            exchange_id=document["exchange_id"],
            type=document["type"],
            symbol=document.get("symbol"),
            timeframe=document.get("timeframe"),
            status=Status(document["status"]),
            state=State(document["state"]),
            schedule=schedules.stored(
                document.get("schedule"), document["exchange_id"], document.get("symbol") or ""
            ),
            priority=document["priority"],
            next_run_at=document["next_run_at"],
            cursor=Cursor.from_document(document.get("cursor")),
            fence=document.get("fence", 0),
            attempt=document.get("attempt", 0),
            params=document.get("params") or {},
            document=document,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What operators change of it, as its document has it."""
        return {name: self.document.get(name) for name in _SETTINGS}

    @property
    def asks_with_priority(self) -> bool:
        """Whether its requests may use the reserve of a window."""
        row = types.find(self.type)
        return self.params.get("priority", row is not None and row.is_urgent) is True

    def cursor_as(self, shape: builtins.type[C]) -> C:
        """The cursor as its type shapes it; `cursor` is for types that walk through time."""
        return shape.from_document(self.document.get("cursor"))

    def params_as(self, kind: builtins.type[P]) -> P:
        """The params that its type understands."""
        return kind.of(self.params)
