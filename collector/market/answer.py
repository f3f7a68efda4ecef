"""A question for bars, and an exchange's answer to it.

An adapter returns rows as the exchange sent them, also those that lie outside the question. The
answer sorts them into bars and refused rows; what they are evidence of is decided by
`pipeline/evidence.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collector.market.bar_rows import BarRows, line_of, rows_of, time_of
from collector.market.candles import CandleBatch
from collector.market.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collector.market.bar_rows import Row
    from collector.market.timeframe import Timeframe

REASONS = ("", "not_finite", "ohlc", "price", "negative_volume", "misaligned", "future")
"""Why a row with a time is not a bar. The first reason that applies is used."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request for the bars of `[from_ms, to_ms)`, of which at most `limit` rows are sent."""

    timeframe: Timeframe
    from_ms: int
    to_ms: int
    limit: int
    about: Interval | None = None
    """The slots in question, when the request begins at a bar before them or ends at one behind:
    outside of them rows are compared with others, and settle nothing."""

    @classmethod
    def of(cls, timeframe: Timeframe, since_ms: int, limit: int) -> Question:
        """The question for `limit` bars from a time on."""
        return cls(timeframe, since_ms, timeframe.shift(since_ms, limit), limit)

    @property
    def interval(self) -> Interval:
        return Interval(self.from_ms, self.to_ms)

    @property
    def scope(self) -> Interval:
        """The slots in question."""
        return self.about or self.interval


@dataclass(frozen=True, slots=True)
class Rejected:
    """A row that did not become a bar, as it came, and why. `ts` is None when it cannot be read."""

    reason: str
    ts: int | None
    row: tuple[object, ...]


@dataclass(frozen=True, eq=False)
class Answer:
    """A well-formed answer to one question. A broken answer never becomes one."""

    question: Question
    rows: BarRows = field(default_factory=lambda: BarRows.of([]))
    """Every row that was sent, oldest first, inside the question or not."""
    full: bool = True
    """Whether rows may have been left out: as many came as were requested, or as ever came."""
    server_ms: int | None = None
    """The time of the answer on the exchange's clock, to the second, rounded down."""
    ended_ms: int = 0
    """Every slot before this time had ended on the exchange's clock."""
    at: int = 0
    """When the exchange answered, on the database's clock."""
    below_zero: bool = False
    """Whether the market may trade at zero or less. Elsewhere such a price is an error."""

    @property
    def bars(self) -> CandleBatch:
        """Valid bars that have ended, ascending, one per slot."""
        return self._sorted[0]

    @property
    def refused(self) -> tuple[Rejected, ...]:
        """The rows of the question that are not bars."""
        return self._sorted[1]

    @cached_property
    def _sorted(self) -> tuple[CandleBatch, tuple[Rejected, ...]]:
        return sort_rows(
            self.rows,
            self.question.timeframe,
            self.question.interval,
            self.ended_ms,
            below_zero=self.below_zero,
        )


def sort_rows(
    rows: Sequence[Row],
    timeframe: Timeframe,
    asked: Interval,
    ended_ms: int,
    *,
    below_zero: bool = False,
) -> tuple[CandleBatch, tuple[Rejected, ...]]:
    """Sorts rows into ended bars, of which the last one of a slot counts, and refused rows.

    Refused rows of another time than `asked` belong to other questions and are left out, except
    for those from the future. The running bar is neither.
    """
    sent = BarRows.of(rows)
    batch = sent.batch
    if not sent.odd and timeframe.are_in_line(batch.ts) and not _wrong(batch, below_zero).any():
        end = int(np.searchsorted(batch.ts, ended_ms))
        if int(batch.ts[-1]) <= ended_ms:
            return (batch if end == len(batch) else batch.take(slice(0, end))), ()
    batch, odd, unread = _with_odd_rows(sent)
    reasons = _wrong(batch, below_zero)
    reasons[(reasons == 0) & (timeframe.floors(batch.ts) != batch.ts)] = 5
    reasons[(reasons == 0) & (batch.ts > ended_ms)] = 6

    def belongs_here(ts: int | None) -> bool:
        return ts is None or asked.from_ms <= ts < asked.to_ms or ts > ended_ms

    refused = [each for each in unread if belongs_here(each.ts)]
    for at in np.flatnonzero(reasons).tolist():
        ts, reason = int(batch.ts[at]), REASONS[reasons[at]]
        if belongs_here(ts):
            row = odd.get(at) or rows_of(batch.take(slice(at, at + 1)))[0]
            refused.append(Rejected(reason, ts, tuple(row)))
    good = batch.only((reasons == 0) & (batch.ts < ended_ms))
    return keep_last(good), tuple(refused)


def keep_last(batch: CandleBatch) -> CandleBatch:
    """The last bar of each time. `batch` is ascending, and equal times stand in page order."""
    if len(batch) < 2:
        return batch
    last = np.append(batch.ts[1:] != batch.ts[:-1], True)
    return batch if last.all() else batch.take(last)


def _with_odd_rows(sent: BarRows) -> tuple[CandleBatch, dict[int, Row], list[Rejected]]:
    """All rows that read as numbers, ascending; the odd ones among them by their place; the rest.

    Values may be None, NaN or numbers as text. Rows of one time keep the order of the page.
    """
    lines, odd, refused = [], [], []
    for row in sent.odd:
        line, ts = line_of(row), time_of(row)
        if line is not None and ts is not None:
            lines.append(line)
            odd.append(row)
        else:
            as_sent = tuple(row) if isinstance(row, list | tuple) else (row,)
            refused.append(Rejected("no_time" if line is not None else "unreadable", ts, as_sent))
    if not lines:
        return sent.batch, {}, refused
    more = CandleBatch.of_columns(np.concatenate(lines))
    batch = CandleBatch.concat([sent.batch, more])
    order = np.argsort(batch.ts, kind="stable")
    first = len(sent.batch)
    places = {at: odd[i - first] for at, i in enumerate(order.tolist()) if i >= first}
    return batch.take(order), places, refused


def _wrong(batch: CandleBatch, below_zero: bool) -> NDArray[np.int8]:
    """For each bar the place in REASONS of what is wrong with its values; 0 for a good one."""
    o, h, l, c, v, t = batch.o, batch.h, batch.l, batch.c, batch.v, batch.t  # noqa: E741
    finite = np.isfinite(o) & np.isfinite(h) & np.isfinite(l) & np.isfinite(c) & np.isfinite(v)
    wrong = (
        ~finite | np.isinf(t),
        (l > np.minimum(o, c)) | (h < np.maximum(o, c)),
        # The low is the least of the four, so what is left here has them in order.
        (l <= 0) & (not below_zero),
        (v < 0) | (t < 0),
    )
    reasons = np.zeros(len(batch), dtype=np.int8)
    for code in range(len(wrong), 0, -1):
        reasons[wrong[code - 1]] = code
    return reasons
