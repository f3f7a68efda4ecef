"""What `collector read` does, and how bars are asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from collector.cli.actions.rows import Rows, table_facts
from collector.cli.database import files_of
from collector.cli.moments import shown_moment, typed_range
from collector.cli.output import Output, number, table
from collector.market.timeframe import Timeframe
from collector.operations.market_names import check_timeframe
from collector.operations.moments import moment_ms
from collector.operations.stored_candles import CandlesAsked

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.fleet.interface import RowRange

Gaps = Literal["include", "omit"]


@dataclass(frozen=True, slots=True)
class Range:
    """What was typed: the moments and what to do with gaps."""

    start: str | None = None
    end: str | None = None
    gaps: Gaps = "include"
    as_of: str | None = None


def read(
    asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range, limit: int
) -> Output:
    """Bars from `start` on, or without one the newest."""
    found = _range(asked, exchange_id, symbol, timeframe, given)
    facts = table_facts(found.newest(limit) if given.start is None else found.first(limit))
    rows = facts["rows"]
    if not rows:
        return Output(facts, "no bars in this range")
    headings = ("time (UTC)", "open", "high", "low", "close", "volume", "gap")
    body = [(shown_moment(row[0]), *map(number, row[1:6]), row[10] or " ") for row in rows]
    return Output(facts, table(headings, body, right="open high low close volume"))


def rows_of(asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range) -> Rows:
    """All of it, to be written to a file."""
    found = _range(asked, exchange_id, symbol, timeframe, given)
    step_ms = Timeframe.parse(timeframe).at(exchange_id).ms
    return Rows("bars", found, step="bars", step_ms=step_ms)


def _range(asked: Asked, exchange_id: str, symbol: str, timeframe: str, given: Range) -> RowRange:
    """What to read. NotStored names near matches when nothing is stored by that name."""
    now_ms = time.time_ns() // 1_000_000
    frame = check_timeframe(timeframe)
    start_ms, end_ms = typed_range(given.start, given.end, now_ms)
    as_of = None if given.as_of is None else moment_ms(given.as_of, now_ms)
    wanted = CandlesAsked(exchange_id, symbol, frame, start_ms, end_ms, given.gaps, as_of)
    return files_of(asked).candles(wanted)
