"""Makes a page of the rows ccxt parsed, once the raw answer shows that they can be believed.

ccxt turns an answer it does not understand into `[]`. An empty page is a statement that becomes
coverage, so it has to be found in the answer itself: the very list that ccxt picked out of it, or
at least an empty list. Rows that are not rows make the whole answer a broken one. Single values
that are missing pass: the pipeline quarantines them with a reason. So does a time that cannot be
one, of 1970 or of another century: it is passed on as missing, because nobody can say whose slot
the row was meant for.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt_errors import http_date_ms
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.exchanges.port import BarPage

if TYPE_CHECKING:
    from collector.exchanges.ccxt_visit import Visit

Row = tuple[float | None, ...]

_DEEPEST = 6
_ERROR_KEYS = frozenset({"error", "errors"})


def page_of(
    exchange_id: str,
    parsed: Any,
    visit: Visit,
    *,
    since_ms: int,
    limit: int,
    bar_ms: int,
    now_ms: int,
) -> BarPage:
    """The page that an answer holds. Raises ExchangeUnavailable when the answer is broken.

    `now_ms` is our own clock, for answers that carry none.
    """
    errand = visit.last
    rows = [row if type(row) is tuple else _row(row) for row in parsed]
    if errand is None or errand.reply is None or not _believable(rows, visit.raw_rows, errand.json):
        raise ExchangeUnavailable(f"{exchange_id}: the answer holds no bars and no empty list")
    server_ms = http_date_ms(errand.reply.headers.get("date", ""))
    latest_ms = (now_ms if server_ms is None else server_ms) + limit * bar_ms
    timed, untimed = _by_time(rows, latest_ms)
    asked = [row for row in timed if row[0] >= since_ms]
    asked.sort(key=itemgetter(0))
    return BarPage(
        rows=(*asked[:limit], *untimed),
        asked_from_ms=since_ms,
        asked_limit=limit,
        server_ms=server_ms,
    )


def _by_time(rows: list[Row], latest_ms: int) -> tuple[list[Any], list[Row]]:
    """The rows whose time can be one, and the others without it."""
    times: list[Any] = [row[0] for row in rows]
    if rows and None not in times and _are_times(min(times), max(times), latest_ms):
        return rows, []
    fit = [ts is not None and _are_times(ts, ts, latest_ms) for ts in times]
    timed = [row for row, fits in zip(rows, fit, strict=True) if fits]
    return timed, [(None, *row[1:]) for row, fits in zip(rows, fit, strict=True) if not fits]


def _are_times(first: float, last: float, latest_ms: int) -> bool:
    return first >= BEFORE_ALL_MARKETS_MS and last <= latest_ms


def _row(parsed: Any) -> Row:
    values = list(parsed)
    return (*values, *[None] * (7 - len(values)))


def _believable(rows: list[Row], raw_rows: Any, json: Any) -> bool:
    if not rows:
        return holds_empty(json, raw_rows)
    if isinstance(raw_rows, list) and not all(isinstance(raw, (list, dict)) for raw in raw_rows):
        return False
    return any(row[0] is not None for row in rows)


def holds_empty(json: Any, raw_rows: Any, depth: int = 0) -> bool:
    """Whether the rows ccxt took stand in the answer, or else any empty list does."""
    if isinstance(json, list):
        return json is raw_rows or not json
    if json is raw_rows and isinstance(json, dict):
        return True
    if depth == _DEEPEST or not isinstance(json, dict):
        return False
    return any(
        holds_empty(value, raw_rows, depth + 1)
        for key, value in json.items()
        if key not in _ERROR_KEYS
    )
