"""Mode 7: pauses after failures, and the queues between the collecting and Redis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, line, row
from collector.tui.words import seconds

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

_PAUSES = columns("exchange|back-off|state|>pause|>failures|last error|since@90")
_QUEUES = columns(
    "exchange|queue|task|>idle|>depth|>of@90|>enqueued|>processed|>dropped|>backpressure@100"
)


def backoff(picture: FleetPicture) -> Sheet:
    pauses: list[tuple[Cell, ...]] = []
    queues: list[tuple[Cell, ...]] = []
    for exchange_id, beat in sorted(picture.heartbeats.items()):
        context = beat["payload"].get("context") or {}
        known = (context.get("diag") or {}).get("backoff") or {}
        pauses += [_pause(exchange_id, name, each) for name, each in sorted(known.items())]
        queues += _queues(exchange_id, context.get("supervisor") or {})
    lines = () if pauses else (line(Cell("no back-off is reported", Tone.FAINT)),)
    grids = [Grid(_PAUSES, tuple(pauses), "Pauses")] if pauses else []
    if queues:
        grids.append(Grid(_QUEUES, tuple(queues), "Publication"))
    return Sheet("Back-off", lines, tuple(grids))


def _pause(exchange_id: str, name: str, state: Document) -> tuple[Cell, ...]:
    active = bool(state.get("active"))
    return row(
        Cell(exchange_id, Tone.STRONG),
        name,
        Cell("active", Tone.BAD) if active else Cell("inactive", Tone.GOOD),
        seconds(state.get("sleep_seconds")),
        int(state.get("fail_count") or 0),
        str(state.get("last_error_type") or ""),
        str(state.get("last_error_ts") or ""),
    )


def _queues(exchange_id: str, supervisor: Document) -> list[tuple[Cell, ...]]:
    tasks = supervisor.get("tasks") or {}
    rows = []
    for name, totals in (supervisor.get("queues") or {}).items():
        task = tasks.get(name) or {}
        state = str(task.get("state") or "-")
        rows.append(
            row(
                Cell(exchange_id, Tone.STRONG),
                str(name),
                Cell(state, Tone.GOOD if state == "running" else Tone.WARNING),
                seconds(task.get("idle_seconds")),
                int(totals.get("depth") or 0),
                int(totals.get("capacity") or 0),
                int(totals.get("enqueued") or 0),
                int(totals.get("processed") or 0),
                int(totals.get("dropped") or 0),
                int(totals.get("backpressure_events") or 0),
            )
        )
    return rows
