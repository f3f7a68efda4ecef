"""What `collector up` shows while it works: every job, how far it is, and the budget."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from collector.cli.connector_words import used_words
from collector.cli.output import cell
from collector.cli.trouble_lines import name_of, trouble_lines
from collector.jobs import types
from collector.progress import slots_done

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Shown = Mapping[str, Any]

_MOST_ROWS = 15


def board(
    jobs: Sequence[Shown],
    connectors: Sequence[Shown],
    pace: float,
    now_ms: int,
    prices: Mapping[tuple[str, str], float] | None = None,
    *,
    troubles: Sequence[Shown] = (),
    in_all: int | None = None,
) -> Group:
    """The picture of one moment: troubles first. `prices` are live ones, by exchange and symbol.

    `in_all` is how many backfills there are, when `jobs` are only some of them.
    """
    backfills = [job for job in jobs if job["type"] == types.OHLCV_BACKFILL.name]
    table = Table(box=None, pad_edge=False)
    for heading in ("exchange", "symbol", "tf", "state", "reached", "", "bars", "left", "price"):
        to_the_right = heading in ("bars", "left", "price")
        table.add_column(heading, justify="right" if to_the_right else "left")
    for job in sorted(backfills, key=_urgency)[:_MOST_ROWS]:
        done, total = slots_done(job)
        table.add_row(
            cell(job["exchange_id"]),
            cell(job["symbol"]),
            cell(job["timeframe"]),
            cell(_state(job)),
            _date(job["cursor"]["since_ms"]),
            ProgressBar(total=max(1, total), completed=done, width=24),
            f"{done:,}",
            _left(total - done, pace, len(backfills)) if total else "",
            _price((prices or {}).get((job["exchange_id"], str(job["symbol"])))),
        )
    live = [job for job in jobs if job["type"] == types.OHLCV_INCREMENTAL.name]
    newest = max((job["cursor"]["last_ts"] for job in live), default=0)
    lines = [
        f"{pace:,.0f} bars/s",
        f"{len(live)} live series, newest bar {_date(newest, seconds=True)}" if newest else "",
        *(_budget(connector) for connector in connectors),
    ]
    more = max(len(backfills), in_all or 0) - min(len(backfills), _MOST_ROWS)
    return Group(
        *(Text(line, style="red") for line in trouble_lines(troubles, now_ms)),
        table,
        Text(f"{more:,} more: collector job list --type ohlcv_backfill\n" if more > 0 else ""),
        Text("   ".join(line for line in lines if line)),
    )


def _urgency(job: Shown) -> int:
    """What failed first, what is done last."""
    if job["cursor"]["done"]:
        return 2
    return 0 if job["state"] == "failed" or job["waiting_for"] == "retry" else 1


def one_line(
    jobs: Sequence[Shown],
    connectors: Sequence[Shown],
    pace: float,
    troubles: Sequence[Shown] = (),
) -> str:
    """The same for a log: no colours, no redrawing."""
    counts = [slots_done(job) for job in jobs if job["type"] == types.OHLCV_BACKFILL.name]
    done, total = sum(c[0] for c in counts), sum(c[1] for c in counts)
    share = 100 * done / total if total else 0.0
    budgets = "   ".join(_budget(connector) for connector in connectors)
    far = f"{done:,} of {total:,} bars ({share:.1f}%)" if total else "no backfill has begun"
    wrong = f"   ! {', '.join(name_of(each) for each in troubles)}" if troubles else ""
    return f"{far}   {pace:,.0f} bars/s   {budgets}{wrong}"


def _price(price: float | None) -> str:
    return "" if price is None else f"{price:,.10g}"


def _state(job: Shown) -> str:
    if job["cursor"]["done"]:
        return "done"
    waiting = job["waiting_for"]
    return f"waits: {waiting}" if waiting else str(job["state"])


def _budget(connector: Shown) -> str:
    """How much of its tightest window an exchange has used, or why it is not used."""
    stop, exchange_id = connector["stop"], connector["exchange_id"]
    if stop is None:
        return f"{exchange_id}: {used_words(connector)}"
    ends = f" until {_date(stop['until'])}" if stop["until"] else ""
    return f"{exchange_id}: {stop['reason']}{ends}"


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
