"""The circuit gate's three states, and a change from one to another."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class CircuitState(IntEnum):
    """The states by their codes. Requests flow while OPEN, unlike in an electric circuit."""

    OPEN = 0
    TRIPPED = 1
    HALF_OPEN = 2


@dataclass(frozen=True, slots=True)
class CircuitTransition:
    """One change of state. `now` is in epoch seconds."""

    state_from: CircuitState
    state_to: CircuitState
    err_rate: float
    window_sec: int
    now: int

    @property
    def line(self) -> str:
        return (
            f"event=circuit_transition state_from={self.state_from.name} "
            f"state_to={self.state_to.name} err_rate={self.err_rate:.6f} "
            f"window_sec={self.window_sec} now={self.now}"
        )
