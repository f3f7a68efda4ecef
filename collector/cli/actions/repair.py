"""The output of `repair`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group

from collector.cli.database import keep_quiet
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.operations import repair as operation
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from collector.cli.verb import Asked
    from collector.operations.repair import Repaired


async def repaired(
    asked: Asked, names: Sequence[str], exchange: str | None, *, dry_run: bool
) -> Output:
    """Repairs the files of some symbols and reports what has to be fetched again."""
    where = asked.here("repair")
    keep_quiet(where.settings)
    return _answer(await operation.repaired(where, names, exchange, dry_run=dry_run))


def _answer(done: Repaired) -> Output:
    facts = {
        "exchange": done.exchange_id,
        "symbols": list(done.symbols),
        "dry_run": done.dry_run,
        "damaged": [
            {
                "path": each.path,
                "kind": each.kind,
                "why": each.why,
                "set_aside": each.aside,
                "rows_kept": each.rows,
            }
            for each in done.damages
        ],
        "lost_events": [asdict(each) for each in done.lost_events],
        "fetching": [
            {
                "symbol": each.symbol,
                "tf": each.timeframe,
                "ts_from": each.from_ms,
                "ts_to": each.to_ms,
            }
            for each in done.fetching
        ],
        "unlisted": list(done.unlisted),
    }
    notes = [f"{each}: not listed any more, so it cannot be fetched" for each in done.unlisted]
    first = [Corrupt(each.path, each.why) for each in done.damages[:1]]
    return Output(facts, shown_repair(done), notes, failures=first if done.dry_run else ())


def shown_repair(done: Repaired) -> Group | str:
    if not (done.damages or done.fetching or done.lost_events):
        return f"{done.exchange_id}: every file is what was written, and nothing is lost"
    parts: list[RenderableType] = []
    set_aside = "damaged" if done.dry_run else "set aside"
    files = [(each.path, each.kind, each.why, f"{each.rows:,}") for each in done.damages]
    events = [(each.network, f"{each.first:,}", f"{each.last:,}") for each in done.lost_events]
    fetched = [
        (
            each.symbol,
            each.timeframe,
            shown_moment(each.from_ms, seconds=False),
            shown_moment(each.to_ms, seconds=False),
        )
        for each in done.fetching
    ]
    will = "would be fetched" if done.dry_run else "will be fetched"
    if files:
        parts += [table((set_aside, "kind", "why", "rows_kept"), files, right="rows_kept"), ""]
    if events:
        parts += [table(("lost events of", "from", "to"), events), "they may be sent again", ""]
    if fetched:
        parts.append(table((will, "tf", "from", "to"), fetched))
    elif not done.unlisted:
        parts.append("no bar is lost: other files have what these had")
    return Group(*parts)
