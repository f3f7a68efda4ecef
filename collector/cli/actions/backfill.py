"""The output of `datalayer backfill`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.cli.database import keep_quiet
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.operations import backfill as operation
from collector.progress import progress_of_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.cli.verb import Asked
    from collector.market.moment import Moment
    from collector.reports.coverage import Coverage


async def backfill(
    asked: Asked, names: Sequence[str], since: Moment | None, exchange: str | None
) -> Output:
    """Returns when everything is stored that the exchange serves now."""
    where = asked.here("datalayer backfill")
    keep_quiet(where.settings)
    done = await operation.backfill(where, names, since, exchange, progress_of_jobs)
    facts = {
        "exchange": done.plan.exchange_id,
        "worker_started": done.worker_started,
        "series": [
            {
                "symbol": each.series.symbol,
                "tf": each.series.timeframe.name,
                "first_ts": each.first_ts,
                "last_ts": each.last_ts,
                "bars": each.present,
                "no_trade": each.no_trade,
                "missing": each.missing,
                "unconfirmed": each.unconfirmed,
            }
            for each in done.covered
        ],
    }
    rows = [
        (
            each.series.symbol,
            each.series.timeframe,
            shown_moment(each.first_ts, seconds=False),
            shown_moment(each.last_ts, seconds=False),
            f"{each.present:,}",
            f"{each.no_trade:,}",
            f"{each.missing:,}",
            f"{each.unconfirmed:,}",
        )
        for each in done.covered
    ]
    headings = ("symbol", "tf", "first", "last", "bars", "no_trade", "missing", "unconfirmed")
    shown = table(headings, rows, right="bars no_trade missing unconfirmed")
    return Output(facts, shown, unconfirmed_notes(done.covered))


def unconfirmed_notes(covered: Sequence[Coverage]) -> list[str]:
    """How many slots were not waited for, and when the longest range is asked about again."""
    slots = sum(each.unconfirmed for each in covered)
    if not slots:
        return []
    ranges = [part for each in covered for part in each.unconfirmed_ranges]
    longest = max(ranges, key=lambda each: each.span.to_ms - each.span.from_ms)
    again = shown_moment(longest.asked_again_ms)
    when = "" if again == "-" else f", about the longest range at {again} UTC"
    them = "1 slot is" if slots == 1 else f"{slots:,} slots are"
    return [f"{them} unconfirmed: the exchange reported no bars there, and jobs ask again{when}"]
