"""Mode 2: jobs by state, and those that deserve a look first."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, line, row
from collector.tui.words import duration, sparkline

if TYPE_CHECKING:
    from collector.tui.fleet_picture import Document, FleetPicture

ROWS = 40
RUNNING_TRAIL = "jobs:running"
_TONES = {
    "failed": Tone.BAD,
    "running": Tone.GOOD,
    "waiting_rate_limit": Tone.WARNING,
    "queued": Tone.STRONG,
}
_FIRST = ("failed", "running", "queued", "waiting_rate_limit")
_COLUMNS = columns("exchange|type|symbol|tf|state|>done|>runs@110|next|error@100")


def jobs(picture: FleetPicture) -> Sheet:
    known = list(picture.jobs.values())
    shown = sorted(known, key=_urgency)[:ROWS]
    rows = tuple(_row(picture, each) for each in shown)
    return Sheet("Jobs", lines=(_counts(picture),), grids=(Grid(_COLUMNS, rows),))


def running(picture: FleetPicture) -> int:
    return sum(each.get("state") == "running" for each in picture.jobs.values())


def _counts(picture: FleetPicture) -> tuple[Cell, ...]:
    counted = Counter(_state(each) for each in picture.jobs.values())
    more = "+" if picture.more_jobs else ""
    parts: list[Cell | str] = [f"{len(picture.jobs):,}{more} jobs"]
    for state, count in sorted(counted.items()):
        parts += ["  ", Cell(f"{count:,} {state}", _TONES.get(state, Tone.PLAIN))]
    return line(*parts, "  ", sparkline(picture.trail(RUNNING_TRAIL), 30))


def _state(job: Document) -> str:
    paused = job.get("status") == "paused" and job.get("state") not in ("success", "failed")
    return "paused" if paused else str(job.get("state"))


def _urgency(job: Document) -> tuple[int, int]:
    state = _state(job)
    rank = _FIRST.index(state) if state in _FIRST else len(_FIRST)
    return rank, int(job.get("next_run_at") or 0)


def _row(picture: FleetPicture, job: Document) -> tuple[Cell, ...]:
    state, stats = _state(job), job.get("stats") or {}
    waits = state in ("idle", "waiting_rate_limit", "queued") and job.get("next_run_at")
    error = str(stats.get("last_error") or "") if state == "failed" or job.get("attempt") else ""
    return row(
        str(job.get("exchange_id") or ""),
        str(job.get("type")),
        str(job.get("symbol") or ""),
        str(job.get("timeframe") or ""),
        Cell(state, _TONES.get(state, Tone.PLAIN)),
        _done(job),
        stats.get("runs") or 0,
        duration(int(job["next_run_at"]) - picture.at_ms) if waits else None,
        Cell(error[:60], Tone.BAD) if error else None,
    )


def _done(job: Document) -> str | None:
    """How much of its stretch a backfill has."""
    cursor = job.get("cursor") or {}
    until = cursor.get("until_ms")
    since = cursor.get("since_ms") or 0
    if not until:
        return None
    if cursor.get("done"):
        return "100%"
    begun = (job.get("progress") or {}).get("from_ms")
    if begun is None or until <= begun:
        return None
    return f"{max(0.0, since - begun) / (until - begun):.0%}"
