"""What `collector trades` does, and how trades are asked for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.cli.actions.rows import Rows, table_facts
from collector.cli.database import files_of
from collector.cli.moments import shown_moment, typed_range
from collector.cli.output import Output, number, table
from collector.durations import HOUR_MS
from collector.operations.connectors import check_exchange
from collector.operations.stored_trades import TradesAsked

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.fleet.interface import RowRange


def shown(found: RowRange, limit: int, *, newest: bool) -> Output:
    """The newest trades of the range, or else its first."""
    facts = table_facts(found.newest(limit) if newest else found.first(limit))
    if not facts["rows"]:
        return Output(facts, "no trades in this range")
    headings = ("time (UTC)", "price", "amount", "side", "id")
    body = [
        (f"{shown_moment(ts)}.{ts % 1000:03}", number(price), number(amount), side, trade_id)
        for trade_id, ts, price, amount, side, _ in facts["rows"]
    ]
    return Output(facts, table(headings, body, right="price amount"))


def range_of(
    asked: Asked, exchange_id: str, symbol: str, start: str | None, end: str | None
) -> RowRange:
    """What to read. NotFound names the job that collects trades when there are none."""
    check_exchange(exchange_id)
    whole = typed_range(start, end, time.time_ns() // 1_000_000)
    return files_of(asked).trades(TradesAsked(exchange_id, symbol, *whole))


def rows_of(found: RowRange) -> Rows:
    """All of it, to be written to a file."""
    return Rows("trades", found, step="hours", step_ms=HOUR_MS)
