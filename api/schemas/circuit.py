"""The circuit gate of a connector in requests and answers."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field

from api.schemas.fields import WHOLE, Body, Count, View
from collector.connectors.circuit.gate import DEFAULTS
from collector.connectors.connector import Connector
from collector.operations.shown.connector import shown_circuit

LONGEST_CIRCUIT_SEC = 86_400
CircuitSeconds = Annotated[int, Field(ge=1, le=LONGEST_CIRCUIT_SEC), WHOLE]


class CircuitBody(Body):
    """The circuit gate's settings, what is left out stays."""

    circuit_window_sec: CircuitSeconds = DEFAULTS.circuit_window_sec
    """How far back outcomes count, in seconds"""
    circuit_max_err_rate_ratio: Annotated[float, Field(gt=0, le=1, strict=False)] = (
        DEFAULTS.circuit_max_err_rate_ratio
    )
    """The share of errors from which on it trips"""
    circuit_min_closed_sec: CircuitSeconds = DEFAULTS.circuit_min_closed_sec
    """How long a trip lasts, in seconds"""
    circuit_half_open_probe: Count = DEFAULTS.circuit_half_open_probe
    """Probes that have to succeed before it opens again"""
    circuit_min_events: Count = DEFAULTS.circuit_min_events
    """Outcomes in the window before it may trip"""
    circuit_probe_lease_sec: CircuitSeconds = DEFAULTS.circuit_probe_lease_sec
    """How long a probe may take, in seconds"""
    thread_safe: bool = DEFAULTS.thread_safe
    """Whether the gate of a process takes a lock. No effect on the gate that workers share"""
    events_per_sec_hint: Annotated[int, Field(ge=0, le=10_000), WHOLE] = (
        DEFAULTS.events_per_sec_hint
    )
    """Outcomes expected a second, from which the length of its memory follows"""
    events_maxlen: Annotated[int, Field(ge=1, le=10_000), WHOLE] | None = DEFAULTS.events_maxlen
    """Outcomes that are remembered at most; null: by the hint"""
    anti_flood_enabled: bool = DEFAULTS.anti_flood_enabled
    """Whether outcomes of a second share one entry, and logs and gauges have a budget a second"""
    max_events_per_sec: Count = DEFAULTS.max_events_per_sec
    """Updates of the gauges per second, for the gate of a process. No effect on the gate that
    workers share: its gauges are read from the database when they are scraped"""
    max_log_lines_per_sec: Count = DEFAULTS.max_log_lines_per_sec
    """Transitions a second that are logged"""


class CircuitView(View):
    """The circuit gate: its snapshot, when a trip ends, and its settings."""

    state: Literal["OPEN", "TRIPPED", "HALF_OPEN"]
    """OPEN lets requests through, TRIPPED none, HALF_OPEN probes"""
    err_rate: float
    """The share of errors in the window"""
    window_len: int
    """Outcomes in the window"""
    last_transition_ts: int
    """When it last moved, in epoch seconds; 0 before the first time"""
    tripped_until: int | None
    """When the trip ends, in epoch ms; null when it is not tripped"""
    settings: CircuitBody
    """Its settings"""

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        return cls.model_validate(shown_circuit(connector, now_ms))


class CircuitEvent(CircuitView):
    """A transition, as listeners receive it."""

    exchange_id: str
    """The exchange whose gate it is"""
    state_from: str
    """The state before"""

    @classmethod
    def of(cls, connector: Connector, now_ms: int) -> Self:
        moved: dict[str, Any] = {
            "exchange_id": connector.exchange_id,
            "state_from": connector.document["circuit"]["transition"]["from"],
        }
        return cls.model_validate({**shown_circuit(connector, now_ms), **moved})
