"""Mode 6: the budget for history calls, its reserve, and what it refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, line, row
from collector.tui.words import gauge, seconds

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

TOP_SKIPPED = 10
_TONES = {"ok": Tone.GOOD, "warn": Tone.WARNING, "critical": Tone.BAD}
_WINDOWS = columns("window|budget|>calls|>limit|>priority calls|>reserve")
_SKIPPED = columns("symbol|tf|>skipped|last reason")


def history_budget(picture: FleetPicture) -> Sheet:
    lines: list[tuple[Cell, ...]] = []
    grids: list[Grid] = []
    for exchange_id, budget in budgets(picture).items():
        lines.append(_summary(exchange_id, budget))
        grids += [_windows(exchange_id, budget), _skipped(budget)]
    if not grids:
        lines.append(line(Cell("no exchange has a budget for history calls", Tone.FAINT)))
    return Sheet("History budget", tuple(lines), tuple(grids))


def budgets(picture: FleetPicture) -> dict[str, Document]:
    """From the connectors, else from the heartbeats, which carry the same."""
    found: dict[str, Document] = {}
    for exchange_id, beat in sorted(picture.heartbeats.items()):
        carried = (beat["payload"].get("context") or {}).get("history")
        if carried:
            found[exchange_id] = carried
    for exchange_id, connector in sorted(picture.connectors.items()):
        if connector.get("history_budget"):
            found[exchange_id] = connector["history_budget"]
    return found


def _summary(exchange_id: str, budget: Document) -> tuple[Cell, ...]:
    state = str(budget.get("throttle_state") or "-")
    targets = (budget.get("priority") or {}).get("targets") or []
    return line(
        Cell(exchange_id, Tone.STRONG),
        "  throttle ",
        Cell(state, _TONES.get(state, Tone.PLAIN)),
        f"  next slot {seconds(budget.get('next_slot_seconds')) or '-'}",
        f"  last denied: {budget.get('last_denied_reason') or '-'}",
        f"  priority: {', '.join(map(str, targets)) or '-'}",
    )


def _windows(exchange_id: str, budget: Document) -> Grid:
    kept = budget.get("priority") or {}
    rows = []
    for name, calls, reserve in (
        ("a minute", "60s", "reserve_per_min"),
        ("an hour", "3600s", "reserve_per_hour"),
    ):
        used, limit = budget.get(f"calls_{calls}") or 0, budget.get(f"limit_{calls}") or 0
        tone = Tone.WARNING if limit and used >= 0.7 * limit else Tone.GOOD
        rows.append(
            row(
                name,
                Cell(gauge(used, limit, 20), tone),
                used,
                limit or None,
                kept.get(f"calls_{calls}"),
                kept.get(reserve),
            )
        )
    return Grid(_WINDOWS, tuple(rows), f"History budget of {exchange_id}")


def _skipped(budget: Document) -> Grid:
    skipped = budget.get("skipped_polls") or []
    top = sorted(skipped, key=lambda each: -int(each.get("count") or 0))[:TOP_SKIPPED]
    rows = [
        row(
            str(each.get("symbol")),
            str(each.get("tf")),
            int(each.get("count") or 0),
            str(each.get("last_reason") or ""),
        )
        for each in top
    ]
    return Grid(_SKIPPED, tuple(rows), "Skipped polls")
