"""What `collector up` shows while it works: every job, how far it is, and the budget."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.connector import Connector
    from collector.jobs.job import Job

RATE_WINDOW_S = 10.0
_MOST_ROWS = 15


@dataclass(slots=True)
class Pace:
    """Bars a second over the last moments, from samples of a growing total."""

    _samples: deque[tuple[float, int]] = field(default_factory=deque)

    def note(self, at: float, total: int) -> float:
        """Adds a sample; returns the pace."""
        self._samples.append((at, total))
        while len(self._samples) > 2 and at - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()
        (first_at, first), (last_at, last) = self._samples[0], self._samples[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at else 0.0


def slots_done(job: Job) -> tuple[int, int]:
    """How many bars of its history a backfill has behind it, and how many there are in all."""
    progress = job.document.get("progress") or {}
    if "from_ms" not in progress or job.timeframe is None:
        return 0, 0
    step = _step_ms(job)
    from_ms, until_ms = progress["from_ms"], progress["until_ms"]
    return (job.cursor.since_ms - from_ms) // step, (until_ms - from_ms) // step


def _step_ms(job: Job) -> int:
    from collector.market.timeframe import Timeframe

    return Timeframe.parse(str(job.timeframe)).ms


def board(jobs: Sequence[Job], connectors: Sequence[Connector], pace: float, now_ms: int) -> Group:
    """The picture of one moment."""
    backfills = [job for job in jobs if job.type == "ohlcv_backfill"]
    table = Table(box=None, pad_edge=False)
    for heading in ("symbol", "tf", "state", "reached", "", "bars", "left"):
        table.add_column(heading, justify="right" if heading in ("bars", "left") else "left")
    for job in backfills[:_MOST_ROWS]:
        done, total = slots_done(job)
        table.add_row(
            str(job.symbol),
            str(job.timeframe),
            _state(job),
            _date(job.cursor.since_ms),
            ProgressBar(total=max(1, total), completed=done, width=24),
            f"{done:,}",
            _left(total - done, pace, len(backfills)) if total else "",
        )
    live = [job for job in jobs if job.type == "ohlcv_incremental"]
    newest = max((job.cursor.last_ts for job in live), default=0)
    lines = [
        f"{pace:,.0f} bars/s",
        f"{len(live)} live series, newest bar {_date(newest, seconds=True)}" if newest else "",
        *(_budget(connector, now_ms) for connector in connectors),
    ]
    return Group(table, Text(""), Text("   ".join(line for line in lines if line)))


def one_line(jobs: Sequence[Job], connectors: Sequence[Connector], pace: float, now_ms: int) -> str:
    """The same for a log: no colours, no redrawing."""
    counts = [slots_done(job) for job in jobs if job.type == "ohlcv_backfill"]
    done, total = sum(c[0] for c in counts), sum(c[1] for c in counts)
    share = 100 * done / total if total else 0.0
    budgets = "   ".join(_budget(connector, now_ms) for connector in connectors)
    return f"{done:,} of {total:,} bars ({share:.1f}%)   {pace:,.0f} bars/s   {budgets}"


def _state(job: Job) -> str:
    if job.cursor.done:
        return "done"
    waiting = job.document.get("waiting_for")
    return f"waits: {waiting}" if waiting else job.state.value


def _budget(connector: Connector, now_ms: int) -> str:
    """How much of its tightest window an exchange has used."""
    stopped = connector.stopped(now_ms)
    if stopped is not None:
        return f"{connector.exchange_id}: {stopped.reason} until {_date(stopped.retry_at_ms)}"
    shares = [
        (usage.used / window.limit, usage.used, window)
        for window, usage in zip(connector.all_windows, connector.usages(now_ms), strict=True)
    ]
    share, used, window = max(shares, key=lambda entry: entry[0])
    return f"{connector.exchange_id}: {used:,}/{window.limit:,} {window.unit} ({share:.0%})"


def _left(slots: int, pace: float, sharing: int) -> str:
    if slots <= 0:
        return ""
    if pace <= 0:
        return "?"
    seconds = int(slots / (pace / max(1, sharing)))
    return f"{seconds // 60}:{seconds % 60:02}" if seconds < 36_000 else "hours"


def _date(ms: int, *, seconds: bool = False) -> str:
    if not ms:
        return "-"
    form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    return datetime.fromtimestamp(ms / 1000, UTC).strftime(form)
