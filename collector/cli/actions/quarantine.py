"""What `collector quarantine` does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from collector.cli.database import files_of
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table

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
    facts = files_of(asked).quarantine(exchange_id, symbol, timeframe, limit, cursor)
    page, more = facts["items"], facts["next_cursor"]
    if not page:
        return Output(facts, "nothing was refused")
    rows = [
        (
            each["symbol"],
            each["timeframe"],
            shown_moment(each["ts"]),
            each["reason"],
            shown_moment(each["known_at"]),
            json.dumps(each["row"]),
        )
        for each in page
    ]
    notes = [f"there are more: --cursor '{more}'"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows), notes)
