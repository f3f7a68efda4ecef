"""What `collector quarantine` does."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.operations.connectors import check_exchange
from collector.operations.market_names import check_timeframe
from collector.store.refused_rows import Place, Which, refused_rows
from collector.store.root import storage_at

if TYPE_CHECKING:
    from collector.cli.verb import Asked

_HEADINGS = ("symbol", "tf", "time (UTC)", "reason", "seen", "row")


def listed(
    asked: Asked,
    exchange_id: str,
    symbol: str | None,
    timeframe: str | None,
    limit: int,
    cursor: str | None,
) -> Output:
    frame = None if timeframe is None else check_timeframe(timeframe)
    try:
        which = Which(check_exchange(exchange_id), symbol, frame)
        after = None if cursor is None else Place.parse(cursor)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    storage = storage_at(asked.settings().data_root)
    found = list(islice(refused_rows(storage, which, after), limit + 1))
    page = found[:limit]
    more = str(page[-1].place) if len(found) > limit else None
    facts = {"items": [each.facts() for each in page], "next_cursor": more}
    if not page:
        return Output(facts, "nothing was refused")
    rows = [
        (
            each.symbol,
            each.timeframe,
            shown_moment(each.ts),
            each.reason,
            shown_moment(each.known_at),
            json.dumps(each.row),
        )
        for each in page
    ]
    notes = [f"there are more: --cursor '{more}'"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows), notes)
