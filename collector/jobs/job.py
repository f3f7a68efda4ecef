"""The job: a frozen picture of its document, and the specification of a new one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.jobs import schedule as schedules
from collector.jobs.states import State, Status
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bson import ObjectId

DEFAULT_PRIORITY = 60
PRIORITIES = {
    "markets_refresh": 10,
    "gap_backfill": 20,
    "ohlcv_incremental": 50,
    "tickers_snapshot": 60,
    "trades_incremental": 65,
    "ohlcv_backfill": 70,
    "ohlcv_from_trades": 72,
    "gap_scan": 75,
    "compact": 80,
    "tail_refresh": 80,
    "verify_source": 85,
    "full_scan": 90,
}
"""Lower goes first: gaps before new bars, new bars before old history."""

EXCHANGE_DUTIES = ("markets_refresh", "compact", "tail_refresh", "gap_scan", "full_scan")
"""The jobs that every exchange has, whatever is collected from it."""

WHOLE_EXCHANGE = (*EXCHANGE_DUTIES, "tickers_snapshot", "verify_source")
"""Types of job that are about an exchange and not about one series."""

ONE_MARKET = ("trades_incremental",)
"""Types of job that are about a symbol, whatever the timeframe."""

_HOUR_MS = 3_600_000
_SCHEDULES: Mapping[str, schedules.Schedule] = {
    "markets_refresh": schedules.Interval(12 * _HOUR_MS),
    "compact": schedules.Interval(_HOUR_MS),
    "tail_refresh": schedules.Interval(_HOUR_MS),
    "gap_scan": schedules.Interval(_HOUR_MS // 4),
    "tickers_snapshot": schedules.Interval(_HOUR_MS // 60),
    "trades_incremental": schedules.Interval(_HOUR_MS // 60),
    "full_scan": schedules.Cron("17 2 * * *"),
    "verify_source": schedules.Cron("37 3 * * 0"),
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a job has come. Everything before `since_ms` is durable in the store."""

    since_ms: int = 0
    until_ms: int | None = None
    page: int = 0
    last_ts: int = 0
    done: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Cursor:
        known = {name: (document or {}).get(name) for name in cls.__slots__}
        return cls(**{name: value for name, value in known.items() if value is not None})

    def to_document(self) -> dict[str, Any]:
        return {
            "since_ms": self.since_ms,
            "until_ms": self.until_ms,
            "page": self.page,
            "last_ts": self.last_ts,
            "done": self.done,
        }


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A job to be. `params` belongs to its handler."""

    exchange_id: str
    type: str
    symbol: str | None = None
    timeframe: str | None = None
    schedule: schedules.Schedule | None = None
    priority: int | None = None
    cursor: Cursor = field(default_factory=Cursor)
    params: Mapping[str, Any] = field(default_factory=dict)
    first_run_ms: int | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1000:
            raise ValueError("priority must be between 0 and 1000")
        if self.timeframe is not None:
            Timeframe.parse(self.timeframe)

    @property
    def unique_key(self) -> str:
        """One live job per exchange, type, symbol, timeframe; for gap jobs the interval too."""
        parts = [self.exchange_id, self.type, self.symbol or "", self.timeframe or ""]
        if self.type == "gap_backfill":
            parts += [str(self.cursor.since_ms), str(self.cursor.until_ms)]
        return "|".join(parts)

    @property
    def effective_schedule(self) -> schedules.Schedule:
        """What was asked for, else what suits the type."""
        if self.schedule is not None:
            return self.schedule
        if self.type == "ohlcv_incremental" and self.timeframe:
            return schedules.BarClose(Timeframe.parse(self.timeframe))
        return _SCHEDULES.get(self.type, schedules.Once())

    @property
    def effective_priority(self) -> int:
        if self.priority is not None:
            return self.priority
        return PRIORITIES.get(self.type, DEFAULT_PRIORITY)


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
            schedule=schedules.parse(document.get("schedule")),
            priority=document["priority"],
            next_run_at=document["next_run_at"],
            cursor=Cursor.from_document(document.get("cursor")),
            fence=document.get("fence", 0),
            attempt=document.get("attempt", 0),
            params=document.get("params") or {},
            document=document,
        )
