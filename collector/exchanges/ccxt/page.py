"""From what ccxt returned for a page of bars to an answer, once it is proved not to be broken.

ccxt turns an answer it does not understand into `[]`, so an answer without rows has to show that it
is an empty one (empty.py). Rows that are not rows make the whole answer a broken one. Single values
that are missing pass: the pipeline quarantines them with a reason. So does a time that cannot be
one, of 1970 or of another century: it is passed on as missing, because the row's slot is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.errors import http_date_ms
from collector.exchanges.ccxt.unread import Unread
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.market.answer import Answer
from collector.market.bar_rows import BarRows, time_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.exchanges.ccxt.empty import EmptyAnswers
    from collector.exchanges.ccxt.visit import Visit
    from collector.market.answer import Question

_SMALLEST_PAGE = 50
"""No venue's largest page is smaller: fewer rows than this are a quiet market, not a cut."""


@dataclass(slots=True)
class Learnt:
    """What answers about one kind of market have shown, because documented figures may be wrong.

    A recorded page size may have changed, or may hold for one endpoint only, so an answer counts as
    whole only when it has fewer rows than were requested, and fewer than came in one answer before.
    """

    exclusive: bool | None = None
    """Whether the bar that opens exactly at `since` is left out; None while unknown."""
    _most: dict[tuple[str, str], int] = field(default_factory=dict)
    """The most rows that came in one answer, by endpoint and timeframe."""

    def since(self, since_ms: int) -> int:
        """The start to request in order to receive the bar at `since_ms`."""
        return max(0, since_ms - 1) if self.exclusive else since_ms

    def is_full(self, question: Question, times: NDArray[np.int64], endpoint: str) -> bool:
        """Whether rows may have been left out of an answer; learns from it."""
        if len(times) and times[0] <= question.from_ms:
            self.exclusive = bool(self.exclusive)
        elif len(times) and times[0] == question.timeframe.shift(question.from_ms, 1):
            self.exclusive = self.exclusive is None or self.exclusive
        place = endpoint, question.timeframe.name
        count, most = len(times), self._most.get(place, 0)
        self._most[place] = max(count, most)
        wanted = count - int(np.searchsorted(times, question.from_ms))
        return wanted > question.limit or count >= min(question.limit, max(most, _SMALLEST_PAGE))


def answer_of(
    exchange_id: str,
    parsed: Any,
    visit: Visit,
    empty: EmptyAnswers,
    question: Question,
    learnt: Learnt,
    now_ms: int,
) -> Answer:
    """The answer with every row that was sent. Raises ExchangeUnavailable when it is broken.

    `now_ms` is our own clock, for answers that carry none. A row whose time is further than a page
    in the future has none.
    """
    errand = visit.last
    if errand is None or errand.reply is None:
        raise ExchangeUnavailable(f"{exchange_id}: no answer to a request for bars")
    endpoint = errand.call.endpoint
    if isinstance(parsed, Unread) and parsed.bars is not None:
        rows = parsed.bars
    else:
        rows = BarRows.of([_row(row) for row in parsed])
    if _are_rows(rows, visit.raw_rows):
        empty.note_good(endpoint, errand.json)
    elif rows or not empty.is_empty(endpoint, errand.json, visit):
        raise ExchangeUnavailable(f"{exchange_id}: the answer holds no bars and no empty list")
    server_ms = http_date_ms(errand.reply.headers.get("date", ""))
    ahead_ms = question.limit * question.timeframe.ms
    rows = _dated(rows, (now_ms if server_ms is None else server_ms) + ahead_ms)
    times = rows.times
    if (times[1:] == times[:-1]).any():
        times = np.unique(times)  # A row that came twice is one: rows are counted by their slots.
    full = learnt.is_full(question, times, endpoint)
    return Answer(question, rows, full=full, server_ms=server_ms)


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
