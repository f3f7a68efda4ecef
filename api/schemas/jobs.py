"""Jobs and their runs as requests and answers show them. Names are seed 004's."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
)

from api.schemas.fields import (
    WHOLE,
    Asked,
    Body,
    BodyMoment,
    ExchangeId,
    Limit,
    Name,
    ObjectIdCursor,
    Symbol,
    TimeframeName,
)
from api.schemas.schedules import ScheduleBody
from collector.jobs.job import Job

JobStatus = Literal["active", "paused", "deleted"]
JobState = Literal["idle", "queued", "running", "waiting_rate_limit", "success", "failed"]
JobType = Literal[
    "markets_refresh",
    "ohlcv_incremental",
    "ohlcv_backfill",
    "ohlcv_from_trades",
    "gap_backfill",
    "trades_incremental",
    "tickers_snapshot",
    "gap_scan",
    "compact",
    "tail_refresh",
    "full_scan",
    "verify_source",
]

ParamName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]

_TEXT = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*")


def _plain_value(value: object) -> object:
    """A value that JSON and BSON both hold exactly."""
    fits = isinstance(value, bool | None) or (
        (isinstance(value, int | float) and -(2**63) <= value < 2**63)
        or (isinstance(value, str) and len(value) <= 1000 and _TEXT.fullmatch(value))
    )
    if not fits:
        raise ValueError("must be a flag, a number of 64 bits, a short line of text or null")
    return value


ParamValue = Annotated[
    Any,
    AfterValidator(_plain_value),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "boolean"},
                {"type": "number", "minimum": -(2**63), "exclusiveMaximum": 2**63},
                {"type": "string", "maxLength": 1000, "pattern": r"^[^\x00-\x1f\x7f-\x9f]*$"},
                {"type": "null"},
            ]
        }
    ),
]
Params = Annotated[
    dict[ParamName, ParamValue],
    Field(max_length=50, json_schema_extra={"additionalProperties": False}),
]
Priority = Annotated[int, Field(ge=0, le=1000, description="Lower goes first"), WHOLE]


class CursorBody(Body):
    """Where a new job begins and ends, as its document names it."""

    since_ms: BodyMoment | None = None
    until_ms: BodyMoment | None = None


class NewJob(Body):
    """A job to be made. `since` and `until` are short for the same fields of `cursor`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "exchange_id": "simulated",
                    "type": "ohlcv_incremental",
                    "symbol": "BTC/USDT",
                    "timeframe": "1h",
                    "schedule": {"mode": "interval", "interval_ms": 3600000},
                },
                {
                    "exchange_id": "simulated",
                    "type": "ohlcv_backfill",
                    "symbol": "BTC/USDT",
                    "timeframe": "1m",
                    "since": "2025-01-01",
                },
            ]
        }
    )

    exchange_id: ExchangeId
    type: JobType
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None
    schedule: ScheduleBody | None = None
    priority: Priority | None = None
    since: BodyMoment | None = None
    until: BodyMoment | None = Field(default=None, examples=["2025-02-01T00:00:00Z", 1738368000000])
    cursor: CursorBody | None = None
    params: Params = Field(default_factory=dict)


class JobChange(Body):
    """What to change; what is left out stays."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"priority": 10}, {"schedule": {"mode": "once"}}]}
    )

    schedule: ScheduleBody | None = Field(default=None, description="null: what suits the type")
    priority: Priority | None = Field(default=None, description="null: what suits the type")
    params: Params = Field(default_factory=dict)


class JobReplacement(JobChange):
    """The whole changeable part of a job; what is left out goes back to what suits the type.

    What the job is about cannot change: these fields may be sent, and must be what they are.
    """

    exchange_id: ExchangeId | None = None
    type: Name | None = None
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None


class JobFilters(Asked):
    """Exact values. Deleted jobs are listed only when asked for by `status`."""

    exchange_id: ExchangeId | None = None
    type: Name | None = None
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None
    status: JobStatus | None = None
    state: JobState | None = None
    order: Literal["oldest", "newest"] = Field("oldest", description="By when they were made")
    limit: Limit = 100
    cursor: ObjectIdCursor | None = None

    def values(self) -> dict[str, str]:
        fields = self.model_dump(exclude={"order", "limit", "cursor"}, exclude_none=True)
        return {name: str(value) for name, value in fields.items()}


class CursorView(BaseModel):
    since_ms: int
    until_ms: int | None
    page: int
    last_ts: int
    done: bool


class Stats(BaseModel):
    runs: int
    success: int
    fail: int
    last_run_at: int | None
    last_success_at: int | None
    last_error: str | None


class Lock(BaseModel):
    locked_by: str | None
    lock_until: int | None


class JobView(BaseModel):
    """A job. `next_run_at`, cursors and locks are epoch ms."""

    id: str
    exchange_id: str
    type: str
    symbol: str | None
    timeframe: str | None
    status: JobStatus
    state: JobState
    schedule: dict[str, Any]
    next_run_at: int
    priority: int
    cursor: CursorView
    params: dict[str, Any]
    stats: Stats
    lock: Lock
    attempt: int
    fence: int
    waiting_for: str | None
    progress: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, job: Job) -> Self:
        document = job.document
        stats, lock = document.get("stats") or {}, document.get("lock") or {}
        return cls(
            id=str(job.id),
            exchange_id=job.exchange_id,
            type=job.type,
            symbol=job.symbol,
            timeframe=job.timeframe,
            status=job.status.value,
            state=job.state.value,
            schedule=job.schedule.to_document(),
            next_run_at=job.next_run_at,
            priority=job.priority,
            cursor=CursorView(**job.cursor.to_document()),
            params=dict(job.params),
            stats=Stats(
                runs=stats.get("runs", 0),
                success=stats.get("success", 0),
                fail=stats.get("fail", 0),
                last_run_at=stats.get("last_run_at"),
                last_success_at=stats.get("last_success_at"),
                last_error=stats.get("last_error"),
            ),
            # Without its lease token: whoever knows that could pass for the worker.
            lock=Lock(locked_by=lock.get("locked_by"), lock_until=lock.get("lock_until")),
            attempt=job.attempt,
            fence=job.fence,
            waiting_for=document.get("waiting_for"),
            progress=document.get("progress"),
            created_at=document["created_at"],
            updated_at=document["updated_at"],
        )


class JobPage(BaseModel):
    items: list[JobView]
    next_cursor: str | None
