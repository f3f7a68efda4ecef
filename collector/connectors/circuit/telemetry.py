"""What a circuit gate reports: one log line and one count per transition, and two gauges.

The log line has a fixed form that programs read, and is the record's whole message; the exchange
goes along as a field. A gate that flaps must not flood the log: lines have a budget a second, while
every transition is made and counted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from structlog.contextvars import bound_contextvars

from collector import metrics

if TYPE_CHECKING:
    from collector.connectors.circuit.gate import CircuitSettings
    from collector.connectors.circuit.state import CircuitState, CircuitTransition

_log = logging.getLogger("collector.circuit")


class Telemetry(Protocol):
    """Receives the transitions and outcomes of a gate."""

    def changed(self, transition: CircuitTransition) -> None:
        """A transition was made."""

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        """An outcome was counted."""


class Silent:
    """For a gate that only computes: reports nothing."""

    def changed(self, transition: CircuitTransition) -> None:
        pass

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        pass


class CircuitTelemetry:
    """The log and Prometheus, for one exchange."""

    def __init__(self, exchange: str, settings: CircuitSettings) -> None:
        limited = settings.anti_flood_enabled
        self._exchange = exchange
        self._events = _Budget(settings.max_events_per_sec if limited else None)
        self._lines = _Budget(settings.max_log_lines_per_sec if limited else None)

    def changed(self, transition: CircuitTransition) -> None:
        metrics.CIRCUIT_TRANSITIONS.labels(
            self._exchange, transition.state_from.name, transition.state_to.name
        ).inc()
        if self._lines.take(transition.now):
            with bound_contextvars(exchange=self._exchange):
                _log.warning("%s", transition.line)

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        metrics.CIRCUIT_STATE.labels(self._exchange).set(state)
        if self._events.take(now_sec):
            metrics.CIRCUIT_ERR_RATE.labels(self._exchange).set(err_rate)


class _Budget:
    """At most this many in one second; None for no limit."""

    def __init__(self, per_sec: int | None) -> None:
        self._per_sec = per_sec
        self._second = -1
        self._taken = 0

    def take(self, now_sec: int) -> bool:
        if self._per_sec is None:
            return True
        if now_sec != self._second:
            self._second, self._taken = now_sec, 0
        self._taken += 1
        return self._taken <= self._per_sec
