"""Jobs and their runs in requests and answers."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
)

from api.schemas.fields import (
    Body,
    BodyMoment,
    ExchangeId,
    Limit,
    Name,
    ObjectIdCursor,
    QueryFields,
    SearchText,
    Symbol,
    TimeframeName,
)
from api.schemas.job_fields import JobTypeName, Params, Priority, param_words
from api.schemas.schedules import ScheduleBody, schedule_of
from collector.errors import InvalidInput
from collector.jobs import types
from collector.jobs.cursor import Cursor
from collector.jobs.earlier import requested_since
from collector.jobs.job import Job
from collector.jobs.network import network_of, place_of
from collector.operations.job_words import advice_words, reason_words
from collector.operations.new_job import JobRequest

JobStatus = Literal["active", "paused", "deleted"]
JobState = Literal["idle", "queued", "running", "waiting_rate_limit", "success", "failed"]

JobStateWord = Literal[
    "idle", "queued", "running", "waiting_rate_limit", "success", "failed", "done", "paused"
]
"""In filters: `done` is finished, `paused` is stopped by a person and neither done nor failed."""
AnyOf: Any = Field(default_factory=list, max_length=100)


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
    type: JobTypeName
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None
    schedule: ScheduleBody | None = None
    priority: Priority | None = None
    since: BodyMoment | None = None
    until: BodyMoment | None = Field(default=None, examples=["2025-02-01T00:00:00Z", 1738368000000])
    cursor: CursorBody | None = None
    params: Params = Field(default_factory=dict, description=param_words())

    def request(self) -> JobRequest:
        """The requested job, with one form for the two ways of naming a range."""
        since, until = self.since, self.until
        if self.cursor is not None:
            row = types.TABLE[self.type]
            if not {"since", "until"} & set(row.takes):
                raise InvalidInput("cursor", "not_allowed", f"{row.name} has no `cursor`")
            if since is not None or until is not None:
                reason = "give `since` and `until`, or `cursor`, not both"
                raise InvalidInput("cursor", "given_twice", reason)
            since, until = self.cursor.since_ms, self.cursor.until_ms
        return JobRequest(
            self.exchange_id,
            self.type,
            self.symbol,
            self.timeframe,
            since,
            until,
            schedule=schedule_of(self.schedule, self.exchange_id, self.symbol, self.timeframe)
            if self.schedule
            else None,
            priority=self.priority,
            params=self.params,
        )


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


class JobFilters(QueryFields):
    """Exact values; a filter that is repeated means any of its values.

    Deleted jobs are listed only when filtered for by `status`.
    """

    exchange_id: list[ExchangeId] = AnyOf
    network: Name | None = Field(default=None, description="Jobs of this network of trade history")
    type: list[Name] = AnyOf
    symbol: list[Symbol] = AnyOf
    timeframe: list[TimeframeName] = AnyOf
    status: list[JobStatus] = AnyOf
    state: list[JobStateWord] = Field(
        default_factory=list,
        max_length=100,
        description="`done`: finished; `paused`: stopped by a person, neither done nor failed",
    )
    search: SearchText | None = Field(
        default=None, description="Letters of the symbol, whatever their case; `btcusdt` is fine"
    )
    order: Literal["oldest", "newest"] = Field("oldest", description="By when they were made")
    limit: Limit = 100
    cursor: ObjectIdCursor | None = None

    def values(self) -> dict[str, str | list[str]]:
        given = {"order", "limit", "cursor", "network"}
        fields = {name: value for name, value in self.model_dump(exclude=given).items() if value}
        if self.network is not None:
            fields["exchange_id"] = [place_of(self.network)]
        return fields


class CursorView(BaseModel):
    """Of a type that walks through time."""

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
    last_error_code: str | None = Field(None, description="The code of `last_error`")
    failing_since: int | None = Field(
        None, description="Epoch ms of the first failure since the last success"
    )


class Lock(BaseModel):
    locked_by: str | None
    lock_until: int | None


class JobView(BaseModel):
    """A job. `next_run_at`, cursors and locks are epoch ms."""

    id: str
    exchange_id: str | None = Field(description="null for a job of a network")
    network: str | None = Field(description="The network of trade history that it works for")
    type: str
    symbol: str | None
    timeframe: str | None
    status: JobStatus
    state: JobState
    schedule: dict[str, Any]
    next_run_at: int
    priority: int
    cursor: CursorView | dict[str, Any] = Field(
        description="In the shape that the type keeps; most walk through time"
    )
    params: dict[str, Any]
    stats: Stats
    lock: Lock
    attempt: int
    fence: int
    waiting_for: str | None
    progress: dict[str, Any] | None
    reason: str | None = Field(
        description="Why it does not do its work, in words: its last error, or what it waits for"
    )
    advice: str | None = Field(description="What to do about its last error")
    requested_since: int | None = Field(
        default=None,
        description="Where the history of a backfill is to begin, in epoch ms; 0: its first bar",
    )
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, job: Job) -> Self:
        document, network = job.document, network_of(job.exchange_id)
        stats, lock = document.get("stats") or {}, document.get("lock") or {}
        return cls(
            id=str(job.id),
            exchange_id=job.exchange_id if network is None else None,
            network=network,
            type=job.type,
            symbol=job.symbol,
            timeframe=job.timeframe,
            status=job.status.value,
            state=job.state.value,
            schedule=job.schedule.to_document(),
            next_run_at=job.next_run_at,
            priority=job.priority,
            cursor=_cursor_view(job),
            params=dict(job.params),
            stats=Stats(
                runs=stats.get("runs", 0),
                success=stats.get("success", 0),
                fail=stats.get("fail", 0),
                last_run_at=stats.get("last_run_at"),
                last_success_at=stats.get("last_success_at"),
                last_error=stats.get("last_error"),
                last_error_code=stats.get("last_error_code"),
                failing_since=stats.get("failing_since"),
            ),
            # Without its lease token, with which one could pose as the worker.
            lock=Lock(locked_by=lock.get("locked_by"), lock_until=lock.get("lock_until")),
            attempt=job.attempt,
            fence=job.fence,
            waiting_for=document.get("waiting_for"),
            progress=document.get("progress"),
            reason=reason_words(job) or None,
            advice=advice_words(job),
            requested_since=requested_since(job),
            created_at=document["created_at"],
            updated_at=document["updated_at"],
        )


def _cursor_view(job: Job) -> CursorView | dict[str, Any]:
    row = types.find(job.type)
    if row is None or row.cursor is Cursor:
        return CursorView(**job.cursor.to_document())
    return job.cursor_as(row.cursor).to_document()


class JobPage(BaseModel):
    items: list[JobView]
    next_cursor: str | None
