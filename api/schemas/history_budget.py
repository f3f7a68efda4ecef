"""The budget of an exchange whose requests are spaced by series, such as FXCM's for history."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints

from api.schemas.fields import WHOLE, Body
from collector.connectors.connector import Connector
from collector.connectors.history_budget import history_budget
from collector.durations import HOUR_MS
from collector.exchanges.quirks.spacing import Spacing, spacing_key

TIMEFRAME = r"[1-9][0-9]{0,3}[smhdwM]"
BarLength = Annotated[str, StringConstraints(pattern=f"^{TIMEFRAME}$")]
Interval = Annotated[int, Field(ge=0, le=HOUR_MS), WHOLE]
Target = Annotated[
    str, StringConstraints(pattern=f"^[A-Za-z0-9/._-]{{1,40}}:{TIMEFRAME}$", max_length=48)
]
Share = Annotated[float, Field(ge=0, le=1)]
_DEFAULTS = Spacing()


class SpacingBody(Body):
    """How far apart requests for one series are, and which series go first."""

    min_interval_ms: Annotated[dict[BarLength, Interval], Field(max_length=32)] = Field(
        default_factory=dict, description="By timeframe"
    )
    priority_targets: Annotated[list[Target], Field(max_length=500)] = Field(
        default_factory=list, description="Series that go first", examples=[["XAU/USD:1m"]]
    )
    min_interval_threshold: Share = _DEFAULTS.threshold
    warn_threshold: Share = _DEFAULTS.warn
    critical_threshold: Share = _DEFAULTS.critical

    def spacing(self) -> Spacing:
        return Spacing(
            dict(self.min_interval_ms),
            frozenset(spacing_key(*each.rsplit(":", 1)) for each in self.priority_targets),
            self.min_interval_threshold,
            self.warn_threshold,
            self.critical_threshold,
        )


class SpacingView(BaseModel):
    """How far apart requests for one series are, and which series go first."""

    min_interval_ms: dict[str, int] = Field(description="By timeframe")
    priority_targets: list[str]
    min_interval_threshold: float = Field(description="The load from which on intervals are kept")
    warn_threshold: float
    critical_threshold: float

    @classmethod
    def of(cls, spacing: Spacing) -> Self:
        return cls(
            min_interval_ms=dict(spacing.intervals_ms),
            priority_targets=sorted(spacing.first),
            min_interval_threshold=spacing.threshold,
            warn_threshold=spacing.warn,
            critical_threshold=spacing.critical,
        )


class PriorityBudget(BaseModel):
    """What is kept for series that go first, and what they have used."""

    targets: list[str]
    reserve_per_min: int
    reserve_per_hour: int
    calls_60s: int
    calls_3600s: int


class SkippedSeries(BaseModel):
    """Polls of one series that the budget refused."""

    symbol: str
    tf: str
    count: int
    last_reason: str
    by_reason: dict[str, int]


class HistoryBudgetView(BaseModel):
    """What of the budget is used now, and what was refused."""

    calls_60s: int
    calls_3600s: int
    limit_60s: int
    limit_3600s: int
    load_ratio: float = Field(description="The share of the fuller window")
    throttle_state: Literal["ok", "warn", "critical"]
    next_slot_seconds: float = Field(description="0: a call without priority may be made now")
    last_denied_reason: str | None
    priority: PriorityBudget
    skipped_polls: list[SkippedSeries] = Field(description="The ten series with the most")

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self | None:
        shown = history_budget(connector, now_ms)
        return None if shown is None else cls.model_validate(shown)
