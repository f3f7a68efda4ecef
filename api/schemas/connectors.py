"""Connectors in requests."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from api.schemas.circuit import CircuitBody
from api.schemas.fields import (
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
from api.schemas.history_budget import Share, SpacingBody
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.connector import DEFAULT_RESERVE_THRESHOLD
from collector.connectors.window import Window
from collector.operations.connector_change import LARGEST_COUNT

AlgorithmName = Literal["sliding_window", "fixed_window"]


class WindowBody(Body):
    """At most `limit` of `unit` in any `period_ms`."""

    unit: Literal["requests", "weight"] = "requests"
    """What is counted: requests, or the weight that the venue gives each of them"""
    limit: Count
    """How many at most"""
    period_ms: Period
    """In how many milliseconds"""
    priority_reserve: Annotated[int, Field(ge=0, le=LARGEST_COUNT), WHOLE] = 0
    """How many of them are kept for urgent requests"""

    def window(self) -> Window:
        return Window(self.unit, self.limit, self.period_ms, self.priority_reserve)


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
    """Requests a period"""
    rate_limit_period_ms: Period | None = None
    """The period, in milliseconds"""
    algorithm: AlgorithmName | None = None
    """How the window counts"""
    windows: Windows | None = None
    """Further limits beside `rate_limit`"""
    max_concurrent_jobs: Count | None = None
    """Jobs that may run at a time; without it as many as workers take"""
    circuit: CircuitBody | None = None
    """Settings of the circuit gate"""
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
    """Requests a period"""
    rate_limit_period_ms: Period = 1
    """The period, in milliseconds"""
    algorithm: AlgorithmName = "sliding_window"
    """How the window counts"""
    windows: Windows = Field(default_factory=list)
    """Further limits beside `rate_limit`; replaces all that are there"""
    max_concurrent_jobs: Count | None = None
    """Jobs that may run at a time; null lifts the ceiling"""
    priority_reserve: Annotated[int, Field(ge=0, le=LARGEST_COUNT), WHOLE] = 0
    """Requests of `rate_limit` that are kept for urgent ones"""
    reserve_threshold: Share = DEFAULT_RESERVE_THRESHOLD
    """The share of a window from which on the reserve is kept"""
    spacing: SpacingBody | None = None
    """Requests are then granted one at a time. null: series keep no distance"""
    circuit: CircuitBody = Field(default_factory=CircuitBody)
    """Settings of the circuit gate; what is left out of it stays"""
    notes: Notes | None = None

    def changes(self) -> dict[str, Any]:
        """Only what was sent; the defaults above never speak."""
        fields = self.model_dump(exclude_unset=True, exclude={"spacing", "windows"})
        if "windows" in self.model_fields_set:
            fields["windows"] = [window.model_dump() for window in self.windows]
        if "spacing" in self.model_fields_set:
            fields["spacing"] = None if self.spacing is None else self.spacing.spacing()
        return fields


class Pause(Body):
    """How long a pause lasts."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"until": "2030-01-01T00:00:00Z"}]})

    until: BodyMoment | None = Field(default=None, description="Without it, until it is resumed")


class ConnectorFilters(QueryFields):
    status: Literal["active", "paused"] | None = None
    """Only those with this status"""
    limit: Limit = 100
    cursor: ExchangeId | None = Field(default=None, description="`next_cursor` of the page before")
