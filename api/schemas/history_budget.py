"""The budget of an exchange whose requests are spaced by series, such as FXCM's for history."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.schemas.fields import WHOLE, Body, View
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
        default_factory=dict, json_schema_extra={"additionalProperties": False}
    )
    """By timeframe, in milliseconds"""
    priority_targets: Annotated[list[Target], Field(max_length=500)] = Field(
        default_factory=list, description="Series that go first", examples=[["XAU/USD:1m"]]
    )
    min_interval_threshold: Share = _DEFAULTS.threshold
    """The load from which on intervals are kept"""
    warn_threshold: Share = _DEFAULTS.warn
    """The load from which on a refusal counts as a warning"""
    critical_threshold: Share = _DEFAULTS.critical
    """The load from which on it counts as critical"""

    def spacing(self) -> Spacing:
        return Spacing(
            dict(self.min_interval_ms),
            frozenset(spacing_key(*each.rsplit(":", 1)) for each in self.priority_targets),
            self.min_interval_threshold,
            self.warn_threshold,
            self.critical_threshold,
        )


class SpacingView(View):
    """How far apart requests for one series are, and which series go first."""

    min_interval_ms: dict[str, int]
    """By timeframe, in milliseconds"""
    priority_targets: list[str]
    """Series that go first"""
    min_interval_threshold: float
    """The load from which on intervals are kept"""
    warn_threshold: float
    """The load from which on a refusal counts as a warning"""
    critical_threshold: float
    """The load from which on it counts as critical"""


class PriorityBudget(View):
    """What is kept for series that go first, and what they have used."""

    targets: list[str]
    """The series"""
    reserve_per_min: int
    """Calls a minute that are kept for them"""
    reserve_per_hour: int
    """Calls an hour that are kept for them"""
    calls_60s: int
    """What they used in the last minute"""
    calls_3600s: int
    """What they used in the last hour"""


class SkippedSeries(View):
    """Polls of one series that the budget refused."""

    symbol: str
    """The symbol"""
    tf: str
    """The timeframe"""
    count: int
    """How many polls"""
    last_reason: str
    """Why the last one"""
    by_reason: dict[str, int]
    """How many for each reason"""


class HistoryBudgetView(View):
    """What of the budget is used now, and what was refused."""

    calls_60s: int
    """Calls in the last minute"""
    calls_3600s: int
    """Calls in the last hour"""
    limit_60s: int
    """Calls that a minute allows"""
    limit_3600s: int
    """Calls that an hour allows"""
    load_ratio: float
    """The share of the fuller window"""
    throttle_state: Literal["ok", "warn", "critical"]
    """How close refusals have come"""
    next_slot_seconds: float
    """When a call without priority may be made; 0 is now"""
    last_denied_reason: str | None
    """Why the last call was refused"""
    priority: PriorityBudget
    """What series that go first have"""
    skipped_polls: list[SkippedSeries]
    """The ten series with the most refused polls"""
