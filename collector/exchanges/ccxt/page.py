"""The rows of an answer, once the raw answer proves that it is not broken.

ccxt turns an answer it does not understand into `[]`, so an answer without rows has to show that it
is an empty one (empty.py). Rows that are not rows make the whole answer a broken one. Single values
that are missing pass: the pipeline quarantines them with a reason. So does a time that cannot be
one, of 1970 or of another century: it is passed on as missing, because the row's slot is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.errors import http_date_ms
from collector.exchanges.ccxt.unread import Unread
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.market.bar_rows import BarRows, time_of

if TYPE_CHECKING:
    from collector.exchanges.ccxt.empty import EmptyAnswers
    from collector.exchanges.ccxt.visit import Visit


@dataclass(frozen=True, slots=True)
class Sent:
    """Every row of an answer."""

    rows: BarRows
    server_ms: int | None
    endpoint: str


def sent_of(
    exchange_id: str, parsed: Any, visit: Visit, empty: EmptyAnswers, *, ahead_ms: int, now_ms: int
) -> Sent:
    """What an answer holds. Raises ExchangeUnavailable when the answer is broken.

    `now_ms` is our own clock, for answers that carry none. A row whose time is further than
    `ahead_ms` in the future has none.
    """
    errand = visit.last
    if errand is None or errand.reply is None:
        raise ExchangeUnavailable(f"{exchange_id}: no answer to a request for bars")
    endpoint = errand.call.endpoint
    if isinstance(parsed, Unread) and parsed.bars is not None:
        rows = parsed.bars
    else:
        rows = BarRows.of([row if type(row) is tuple else _row(row) for row in parsed])
    if _are_rows(rows, visit.raw_rows):
        empty.note_good(endpoint, errand.json)
    elif rows or not empty.is_empty(endpoint, errand.json, visit):
        raise ExchangeUnavailable(f"{exchange_id}: the answer holds no bars and no empty list")
    server_ms = http_date_ms(errand.reply.headers.get("date", ""))
    latest_ms = (now_ms if server_ms is None else server_ms) + ahead_ms
    return Sent(_dated(rows, latest_ms), server_ms, endpoint)


def _dated(rows: BarRows, latest_ms: int) -> BarRows:
    """The rows, without times that are impossible."""
    times = rows.times
    if not len(times) or (times[0] >= BEFORE_ALL_MARKETS_MS and times[-1] <= latest_ms):
        return rows

    def dated(row: Any) -> Any:
        ts = time_of(row)
        fits = ts is not None and BEFORE_ALL_MARKETS_MS <= ts <= latest_ms
        return row if fits else (None, *row[1:])

    return BarRows.of([dated(row) for row in rows])


def _row(parsed: Any) -> tuple[Any, ...]:
    values = list(parsed)
    return (*values, *[None] * (7 - len(values)))


def _are_rows(rows: BarRows, raw_rows: Any) -> bool:
    if isinstance(raw_rows, list) and not all(isinstance(raw, (list, dict)) for raw in raw_rows):
        return False
    return len(rows.batch) > 0 or any(row[0] is not None for row in rows.odd)
