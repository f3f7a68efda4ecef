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


async def backfill(
    asked: Asked, names: Sequence[str], since: Moment | None, exchange: str | None
) -> Output:
    """Returns when everything is stored."""
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
        )
        for each in done.covered
    ]
    headings = ("symbol", "tf", "first", "last", "bars", "no_trade", "missing")
    return Output(facts, table(headings, rows, right="bars no_trade missing"))
