"""Faults of a request's way to the exchange: it arrives later than it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from collector.simulated.faults.record import Amount, RequestFault

if TYPE_CHECKING:
    from collector.simulated.faults.record import Strike


@dataclass(frozen=True, kw_only=True)
class LateArrival(RequestFault):
    """The request takes `ms` to get here, and up to `jitter_ms` more. The exchange notes it and
    counts it when it arrives; several that strike add up."""

    kind: Literal["late_arrival"] = "late_arrival"
    ms: Amount = 0.0
    jitter_ms: Amount = 0.0

    def late_ms(self, turn: Strike) -> float:
        return self.ms + self.jitter_ms * turn.roll
