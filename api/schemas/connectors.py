"""Connectors in requests and answers."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from api.schemas.budgets import BudgetView
from api.schemas.fields import (
    LARGEST_COUNT,
    WHOLE,
    Body,
    BodyMoment,
    Count,
    ExchangeId,
    Limit,
    Notes,
    Period,
    QueryFields,
)
from api.schemas.history_budget import HistoryBudgetView, Share, SpacingBody, SpacingView
from collector.connectors.circuit.gate import DEFAULTS, CircuitSettings
from collector.connectors.connector import DEFAULT_RESERVE_THRESHOLD, Connector
from collector.connectors.session_lease import shown_session
from collector.connectors.window import Window
from collector.exchanges.exclusive import SessionState

LONGEST_CIRCUIT_SEC = 86_400
CircuitSeconds = Annotated[int, Field(ge=1, le=LONGEST_CIRCUIT_SEC), WHOLE]
ConnectorStatus = Literal["active", "paused", "deleted"]
AlgorithmName = Literal["sliding_window", "fixed_window"]


class WindowBody(Body):
    """At most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"] = "requests"
    limit: Count
    period_ms: Period
    priority_reserve: Annotated[int, Field(ge=0, le=LARGEST_COUNT), WHOLE] = 0

    def window(self) -> Window:
        return Window(self.unit, self.limit, self.period_ms, self.priority_reserve)


class CircuitBody(Body):
    """The circuit gate's settings, what is left out stays."""

    circuit_window_sec: CircuitSeconds = DEFAULTS.circuit_window_sec
    circuit_max_err_rate_ratio: Annotated[float, Field(gt=0, le=1, strict=False)] = (
        DEFAULTS.circuit_max_err_rate_ratio
    )
    circuit_min_closed_sec: CircuitSeconds = DEFAULTS.circuit_min_closed_sec
    circuit_half_open_probe: Count = DEFAULTS.circuit_half_open_probe
    circuit_min_events: Count = DEFAULTS.circuit_min_events
    circuit_probe_lease_sec: CircuitSeconds = DEFAULTS.circuit_probe_lease_sec
    thread_safe: bool = DEFAULTS.thread_safe
    events_per_sec_hint: Annotated[int, Field(ge=0, le=10_000), WHOLE] = (
        DEFAULTS.events_per_sec_hint
    )
    events_maxlen: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = DEFAULTS.events_maxlen
    anti_flood_enabled: bool = DEFAULTS.anti_flood_enabled
    max_events_per_sec: Count = DEFAULTS.max_events_per_sec
    max_log_lines_per_sec: Count = DEFAULTS.max_log_lines_per_sec


Windows = Annotated[list[WindowBody], Field(max_length=16)]


class NewConnector(Body):
    """A connector to be made. What is left out comes from the venue's own figures."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"exchange_id": "simulated"},
                {
                    "exchange_id": "binance",
                    "rate_limit": 1000,
                    "rate_limit_period_ms": 60000,
                    "windows": [{"unit": "weight", "limit": 6000, "period_ms": 60000}],
                    "notes": "our own address",
                },
            ]
        }
    )

    exchange_id: ExchangeId
    rate_limit: Count | None = None
    rate_limit_period_ms: Period | None = None
    algorithm: AlgorithmName | None = None
    windows: Windows | None = None
    max_concurrent_jobs: Count | None = None
    circuit: CircuitBody | None = None
    notes: Notes | None = None

    def overrides(self) -> dict[str, Any]:
        """The fields of `Limits` that were given."""
        fields = self.model_dump(exclude={"exchange_id", "notes", "windows", "circuit"})
        if self.circuit is not None:
            fields["circuit"] = CircuitSettings(**self.circuit.model_dump())
        if self.windows is not None:
            fields["windows"] = tuple(window.window() for window in self.windows)
        return fields


class ConnectorChange(Body):
    """What to change; what is left out stays. What was granted already keeps counting."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"rate_limit": 500, "rate_limit_period_ms": 60000}]}
    )

    rate_limit: Count = 1
    rate_limit_period_ms: Period = 1
    algorithm: AlgorithmName = "sliding_window"
    windows: Windows = Field(default_factory=list)
    max_concurrent_jobs: Count | None = Field(default=None, description="null lifts the ceiling")
    priority_reserve: Annotated[int, Field(ge=0, le=LARGEST_COUNT), WHOLE] = 0
    reserve_threshold: Share = DEFAULT_RESERVE_THRESHOLD
    spacing: SpacingBody | None = Field(
        default=None,
        description="Requests are then granted one at a time. null: series keep no distance",
    )
    circuit: CircuitBody = Field(default_factory=CircuitBody)
    notes: Notes | None = None

    def changes(self) -> dict[str, Any]:
        """Only what was sent; the defaults above never speak."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        if "windows" in fields:
            fields["windows"] = [window.window() for window in self.windows]
        if fields.get("spacing") is not None:
            fields["spacing"] = fields["spacing"].spacing()
        if fields.pop("circuit", None) is not None:
            given = self.circuit.model_dump(exclude_unset=True)
            fields |= {f"circuit.settings.{name}": value for name, value in given.items()}
        return fields


class Pause(Body):
    """How long a pause lasts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2030-01-01T00:00:00Z"}]})

    until: BodyMoment | None = Field(default=None, description="Without it, until it is resumed")


class ConnectorFilters(QueryFields):
    status: Literal["active", "paused"] | None = None
    limit: Limit = 100
    cursor: ExchangeId | None = Field(default=None, description="`next_cursor` of the page before")


class ReportedUsage(BaseModel):
    """What the exchange itself reported as counted."""

    unit: str
    period_ms: int
    used: int
    at: int


class WindowView(BaseModel):
    unit: str
    limit: int
    period_ms: int
    priority_reserve: int


class CircuitView(BaseModel):
    """The circuit gate: its snapshot, when a trip ends, and its settings."""

    state: Literal["OPEN", "TRIPPED", "HALF_OPEN"]
    err_rate: float
    window_len: int = Field(description="Outcomes in the window")
    last_transition_ts: int = Field(description="Epoch seconds; 0 before the first")
    tripped_until: int | None = Field(description="Epoch ms")
    settings: CircuitBody

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        circuit = connector.document.get("circuit") or {}
        tripped_until = circuit.get("tripped_until") or 0
        return cls.model_validate(
            {
                **connector.circuit(now_ms).snapshot(),
                "tripped_until": tripped_until if tripped_until > now_ms else None,
                "settings": asdict(connector.limits.circuit),
            }
        )


class CircuitEvent(CircuitView):
    """A transition, as listeners receive it."""

    exchange_id: str
    state_from: str

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        return cls(
            **CircuitView.of(connector, now_ms).model_dump(),
            exchange_id=connector.exchange_id,
            state_from=connector.document["circuit"]["transition"]["from"],
        )


class SessionView(BaseModel):
    """The only session of an account. Moments are epoch ms."""

    state: SessionState
    since: int = Field(description="When it came into this state; 0 before the first")
    reason: str
    holder: str | None = Field(description="The worker that holds it")
    lease_until: int | None
    fence: int = Field(description="How often it was taken")
    diag: dict[str, Any] | None = Field(
        description="`backoff`: for each of its pauses whether it is active, how long, and why"
    )

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self | None:
        shown = shown_session(connector, now_ms)
        return None if shown is None else cls.model_validate(asdict(shown))


class CadenceView(BaseModel):
    """Seconds between two polls for new bars, of 1m and of longer ones, and why."""

    m1: float
    m5: float
    reason: str


class ConnectorView(BaseModel):
    """One exchange's status, limits and what it has granted. Windows and pauses are epoch ms."""

    exchange_id: str
    creation_date: datetime
    status: ConnectorStatus
    notes: str | None
    rate_limit: int
    rate_limit_period_ms: int
    algorithm: AlgorithmName
    windows: list[WindowView]
    max_concurrent_jobs: int | None
    priority_reserve: int
    reserve_threshold: float
    spacing: SpacingView | None
    history_budget: HistoryBudgetView | None
    rate_limit_usage: int
    rate_limit_window_start: int
    rate_limit_reset_at: int
    reported_usage: ReportedUsage | None
    budgets: list[BudgetView] = Field(
        description="What is used now of every window, the fullest first"
    )
    paused_until: int | None
    blocked_until: int | None
    blocked_reason: str | None
    blocked: bool = Field(description="The exchange refuses requests now; see `blocked_until`")
    stopped: bool = Field(
        description="No request is sent now: paused, blocked, deleted, or its circuit has tripped"
    )
    circuit: CircuitView
    session: SessionView | None = Field(
        description="Of an exchange whose account allows one login; null elsewhere"
    )
    cadence: CadenceView | None
    granted_total: int
    denied_total: int
    charged_total: int
    last_job_run_time: datetime | None
    jobs_count: int
    active_jobs_count: int
    updated_at: datetime

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        """As it is at `now_ms`: what has run out since the last write is shown as over."""
        document, limits = connector.document, connector.limits
        paused_until = document.get("paused_until")
        pause_over = paused_until is not None and paused_until <= now_ms
        blocked_until = document.get("blocked_until") or 0
        blocked = blocked_until > now_ms
        status = "active" if connector.status == "paused" and pause_over else connector.status
        circuit = CircuitView.of(connector, now_ms)
        return cls(
            exchange_id=connector.exchange_id,
            creation_date=connector.creation_date,
            status=status,
            notes=document.get("notes"),
            rate_limit=limits.rate_limit,
            rate_limit_period_ms=limits.rate_limit_period_ms,
            algorithm=limits.algorithm,
            windows=[WindowView(**window.to_document()) for window in limits.windows],
            max_concurrent_jobs=limits.max_concurrent_jobs,
            priority_reserve=limits.priority_reserve,
            reserve_threshold=limits.reserve_threshold,
            spacing=None if limits.spacing is None else SpacingView.of(limits.spacing),
            history_budget=HistoryBudgetView.of(connector, now_ms),
            rate_limit_usage=usage_now(connector, now_ms),
            rate_limit_window_start=document.get("rate_limit_window_start") or 0,
            rate_limit_reset_at=document.get("rate_limit_reset_at") or 0,
            reported_usage=document.get("reported_usage"),
            budgets=BudgetView.all_of(connector, now_ms),
            paused_until=None if pause_over else paused_until,
            blocked_until=blocked_until if blocked else None,
            blocked_reason=document.get("blocked_reason") if blocked else None,
            blocked=blocked,
            stopped=blocked or status != "active" or circuit.state == "TRIPPED",
            circuit=circuit,
            session=SessionView.of(connector, now_ms),
            cadence=document.get("cadence"),
            granted_total=document.get("granted_total") or 0,
            denied_total=document.get("denied_total") or 0,
            charged_total=document.get("charged_total") or 0,
            last_job_run_time=document.get("last_job_run_time"),
            jobs_count=document.get("jobs_count") or 0,
            active_jobs_count=document.get("active_jobs_count") or 0,
            updated_at=document["updated_at"],
        )


class ConnectorPage(BaseModel):
    items: list[ConnectorView]
    next_cursor: str | None


def usage_now(connector: Connector, now_ms: int) -> int:
    """The tokens granted in the window that is open; a window that has ended counts nothing."""
    open_still = (connector.document.get("rate_limit_reset_at") or 0) > now_ms
    return int(connector.document.get("rate_limit_usage") or 0) if open_still else 0
