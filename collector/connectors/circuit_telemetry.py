"""What a circuit gate tells the outside: one log line and one count a transition, two gauges.

The log line is seed 002's, to the letter, and is the record's whole message; the exchange goes
along as a field. A gate that flaps must not flood the log: lines have a budget a second, while
every transition is made and counted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from structlog.contextvars import bound_contextvars

from collector import metrics

if TYPE_CHECKING:
    from collector.connectors.circuit_state import CircuitState, Transition

MAX_EVENTS_PER_SEC = 50
MAX_LOG_LINES_PER_SEC = 10

_log = logging.getLogger("collector.circuit")


class Telemetry(Protocol):
    """Hears what a gate does."""

    def changed(self, transition: Transition) -> None:
        """A transition was made."""

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        """An outcome was counted."""


class Silent:
    """For a gate that only computes."""

    def changed(self, transition: Transition) -> None:
        pass

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        pass


class CircuitTelemetry:
    """The log and Prometheus, for one exchange."""

    def __init__(
        self,
        exchange: str,
        *,
        anti_flood_enabled: bool = True,
        max_events_per_sec: int = MAX_EVENTS_PER_SEC,
        max_log_lines_per_sec: int = MAX_LOG_LINES_PER_SEC,
    ) -> None:
        self._exchange = exchange
        self._events = _Budget(max_events_per_sec if anti_flood_enabled else None)
        self._lines = _Budget(max_log_lines_per_sec if anti_flood_enabled else None)

    def changed(self, transition: Transition) -> None:
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
    """At most so many in one second; None for no limit."""

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
