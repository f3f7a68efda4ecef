"""Mode 1: every exchange with its budget, its circuit gate and its stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, row
from collector.tui.words import duration, gauge, sparkline

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

_COLUMNS = columns(
    "exchange|status|budget|>used|circuit|trail@90|>jobs|>granted@100|>denied@100|session@120"
)


def exchanges(picture: FleetPicture) -> Sheet:
    rows = tuple(_row(picture, each) for _, each in sorted(picture.connectors.items()))
    return Sheet("Exchanges", grids=(Grid(_COLUMNS, rows),))


def usage_trail(exchange_id: str) -> str:
    return f"usage:{exchange_id}"


def _row(picture: FleetPicture, connector: Document) -> tuple[Cell, ...]:
    name = str(connector["exchange_id"])
    used, limit = connector.get("rate_limit_usage") or 0, connector.get("rate_limit") or 0
    full = Tone.WARNING if limit and used >= limit else Tone.GOOD
    return row(
        Cell(name, Tone.STRONG),
        _status(picture, connector),
        Cell(gauge(used, limit), full),
        f"{used}/{limit}",
        _circuit(connector),
        sparkline(picture.trail(usage_trail(name)), 24),
        connector.get("active_jobs_count") or 0,
        connector.get("granted_total") or 0,
        connector.get("denied_total") or 0,
        str((connector.get("session") or {}).get("state") or ""),
    )


def _status(picture: FleetPicture, connector: Document) -> Cell:
    until = connector.get("blocked_until")
    if until:
        return Cell(f"blocked {duration(until - picture.at_ms)}", Tone.BAD)
    if connector.get("status") == "paused":
        return Cell("paused", Tone.WARNING)
    return Cell(str(connector.get("status") or "-"), Tone.GOOD)


def _circuit(connector: Document) -> Cell:
    circuit = connector.get("circuit") or {}
    state, rate = str(circuit.get("state") or "-"), circuit.get("err_rate") or 0.0
    tone = Tone.GOOD if state == "OPEN" else Tone.BAD
    return Cell(state if not rate else f"{state} {rate:.0%}", tone)
