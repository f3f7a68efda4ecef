"""Mode 3: the workers that are alive, and what each has in hand."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from collector.tui.sheet import Cell, Grid, Sheet, Tone, columns, row
from collector.tui.words import duration, gauge

if TYPE_CHECKING:
    from collector.tui.fleet_picture import FleetPicture

_QUIET_MS = 25_000
_COLUMNS = columns("worker|host|>pid|load|>jobs|>of|exchanges@100|seen|up|metrics@130")


def workers(picture: FleetPicture) -> Sheet:
    held: Counter[str] = Counter()
    exchanges: dict[str, set[str]] = {}
    for job in picture.jobs.values():
        owner = (job.get("lock") or {}).get("locked_by")
        if owner and job.get("state") == "running":
            held[owner] += 1
            exchanges.setdefault(owner, set()).add(str(job.get("exchange_id")))
    rows = []
    for worker in sorted(picture.workers or (), key=lambda each: str(each.get("id"))):
        name = str(worker.get("id"))
        jobs, most = held[name], int(worker.get("concurrency") or 0)
        unseen = picture.at_ms - _ms(worker.get("seen_at"), picture.at_ms)
        rows.append(
            row(
                Cell(name.rpartition(":")[2], Tone.STRONG),
                str(worker.get("host") or ""),
                str(worker.get("pid") or ""),
                gauge(jobs, most),
                jobs,
                most,
                ", ".join(sorted(exchanges.get(name, ()))),
                Cell(f"{duration(unseen)} ago", Tone.WARNING if unseen > _QUIET_MS else Tone.GOOD),
                duration(picture.at_ms - _ms(worker.get("started_at"), picture.at_ms)),
                str(worker.get("metrics") or ""),
            )
        )
    return Sheet("Workers", grids=(Grid(_COLUMNS, tuple(rows)),))


def _ms(moment: Any, default: int) -> int:
    """Of an ISO 8601 text."""
    if not isinstance(moment, str):
        return default
    return round(datetime.fromisoformat(moment).timestamp() * 1000)
