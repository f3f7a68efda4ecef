"""A circuit gate of one process, with its time in the test's hands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.connectors.circuit.gate import CircuitGate, CircuitSettings

if TYPE_CHECKING:
    from collector.clock import ManualClock


def gate_of(
    clock: ManualClock, settings: CircuitSettings | None = None, **options: Any
) -> CircuitGate:
    name = options.pop("exchange", "venue")
    chosen = replace(settings or CircuitSettings(), **options)
    return CircuitGate(name, chosen, now_ms=clock.wall_ms)


def record(gate: CircuitGate, *, ok: int = 0, err: int = 0) -> None:
    for _ in range(ok):
        gate.record(True)
    for _ in range(err):
        gate.record(False)
