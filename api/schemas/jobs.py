"""Jobs in requests and answers."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

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
    View,
)
from api.schemas.job_fields import JobTypeName, Params, Priority, param_words
from api.schemas.schedules import ScheduleBody, schedule_of
from collector.errors import InvalidInput
from collector.jobs import types
from collector.jobs.job import Job
from collector.jobs.network import place_of
from collector.operations.new_job import JobRequest
from collector.operations.shown.job import shown_job

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
    """The same as `since`"""
    until_ms: BodyMoment | None = None
    """The same as `until`"""


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
    """The market, for types that are about one; BTCUSDT is understood where one market matches"""
    timeframe: TimeframeName | None = None
    """The length of its bars, for types that have any"""
    schedule: ScheduleBody | None = None
    """When it runs; without it as suits the type"""
    priority: Priority | None = None
    since: BodyMoment | None = None
    """Where its range begins"""
    until: BodyMoment | None = Field(
        default=None,
        description="Where its range ends",
        examples=["2025-02-01T00:00:00Z", 1738368000000],
    )
    cursor: CursorBody | None = None
    """The range in another form: give this, or `since` and `until`"""
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
    """Its type, unchanged"""
    symbol: Symbol | None = None
    timeframe: TimeframeName | None = None


class JobFilters(QueryFields):
    """Exact values; a filter that is repeated means any of its values.

    Deleted jobs are listed only when filtered for by `status`.
    """

    exchange_id: list[ExchangeId] = AnyOf
    """Of these exchanges"""
    network: Name | None = Field(default=None, description="Jobs of this network of trade history")
    type: list[Name] = AnyOf
    """Of these types"""
    symbol: list[Symbol] = AnyOf
    """Of these markets"""
    timeframe: list[TimeframeName] = AnyOf
    """With bars of these lengths"""
    status: list[JobStatus] = AnyOf
    """With these statuses; deleted ones are listed only when named here"""
    state: list[JobStateWord] = Field(
        default_factory=list,
        max_length=100,
        description="`done`: finished; `paused`: stopped by a person, neither done nor failed",
    )
    search: SearchText | None = Field(
        default=None, description="Letters of the symbol, whatever their case; `btcusdt` is fine"
    )
    id_prefix: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{4,24}$",
        description="Whose id begins so; not with other filters than `status`, nor a cursor",
    )
    order: Literal["oldest", "newest"] = Field("oldest", description="By when they were made")
    limit: Limit = 100
    cursor: ObjectIdCursor | None = None

    def values(self) -> dict[str, str | list[str]]:
        given = {"order", "limit", "cursor", "network", "id_prefix"}
        fields = {name: value for name, value in self.model_dump(exclude=given).items() if value}
        if self.network is not None:
            fields["exchange_id"] = [place_of(self.network)]
        if self.id_prefix is not None and (fields.keys() - {"status"} or self.cursor is not None):
            raise InvalidInput("id_prefix", "not_allowed", "`id_prefix` goes without other filters")
        return fields


class CursorView(View):
    """Of a type that walks through time. Times are epoch ms."""

    since_ms: int
    """Everything before this is stored"""
    until_ms: int | None
    """Where its range ends; null: it has no end"""
    page: int
    """Pages since the run began"""
    last_ts: int
    """The opening time of the last bar that was stored; 0 before the first"""
    done: bool
    """Whether nothing is left to do"""


class Stats(View):
    """What became of its runs. Times are epoch ms."""

    runs: int
    """How many there were"""
    success: int
    """How many ended well"""
    fail: int
    """How many ended with an error"""
    last_run_at: int | None
    """When the last one began"""
    last_success_at: int | None
    """When the last one that ended well did so"""
    last_error: str | None
    """The last error in words"""
    last_error_code: str | None = None
    """The code of `last_error`"""
    failing_since: int | None = None
    """When the first failure since the last success was"""


class Lock(View):
    """Which worker has it."""

    locked_by: str | None
    """The worker; null when none has it"""
    lock_until: int | None
    """When its lease ends, in epoch ms"""


class JobView(View):
    """A job. `next_run_at`, cursors and locks are epoch ms."""

    id: str
    """Its id"""
    exchange_id: str | None
    """Its exchange; null for a job of a network"""
    network: str | None
    """The network of trade history that it works for"""
    type: str
    """What it does"""
    symbol: str | None
    """The market that it is about; null for a type that is about the exchange"""
    timeframe: str | None
    """The length of its bars; null for a type without bars"""
    status: JobStatus
    """What operators have decided"""
    state: JobState
    """Where the work is"""
    schedule: dict[str, Any]
    """When it runs: `mode`, and what the mode needs"""
    next_run_at: int
    """When it is due"""
    priority: int
    """Lower goes first"""
    cursor: CursorView | dict[str, Any]
    """How far it is, in the shape that the type keeps; most walk through time"""
    params: dict[str, Any]
    """Parameters of its type, and notes"""
    stats: Stats
    """What became of its runs"""
    lock: Lock
    """Which worker has it"""
    attempt: int
    """Failed runs in a row"""
    fence: int
    """Grows whenever a worker takes it"""
    waiting_for: str | None
    """Why it waits, when it is not for its time"""
    progress: dict[str, Any] | None
    """What its type reports about how far it is"""
    reason: str | None
    """Why it does not do its work, in words: its last error, or what it waits for"""
    advice: str | None
    """What to do about its last error"""
    requested_since: int | None = None
    """Where the history of a backfill is to begin; 0: at its first bar"""
    created_at: datetime
    """When it was made"""
    updated_at: datetime
    """When an operator or a worker last changed it"""

    @classmethod
    def of(cls, job: Job) -> Self:
        return cls.model_validate(shown_job(job))


class MadeJob(JobView):
    """The job that was requested."""

    notes: list[str]
    """What became of `since` when the job existed"""

    @classmethod
    def with_notes(cls, job: Job, notes: list[str]) -> Self:
        return cls.model_validate({**shown_job(job), "notes": notes})


class JobPage(View):
    items: list[JobView]
    """In the order that was asked for"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
