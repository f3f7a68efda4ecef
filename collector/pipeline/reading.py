"""Answers about one range, read together: bars, coverage, and bars in doubt. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from collector.market.bar_rows import BarRows, rows_of
from collector.market.interval import Interval, clipped, subtract, unbroken
from collector.pipeline.closed import closed_end_ms
from collector.pipeline.doubt import doubtful
from collector.pipeline.normalize import Rejected
from collector.pipeline.prepare import Prepared, prepare
from collector.pipeline.proof import AnswerExtent, proven

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.candles import CandleBatch
    from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True)
class AnswerRows:
    """One answer: its extent, and its rows as they came."""

    extent: AnswerExtent
    rows: BarRows


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """The result of some answers. `doubtful` are valid bars that do not fit their neighbours."""

    extents: tuple[AnswerExtent, ...]
    prepared: Prepared
    doubtful: CandleBatch


@dataclass(frozen=True, slots=True, eq=False)
class Reader:
    """Reads answers about one series, at one moment on the venue's clock.

    `before` are known bars before the range. Bars before `after_ms` were accepted earlier, and are
    no longer in doubt.
    """

    timeframe: Timeframe
    now_ms: int
    after_ms: int = 0
    before: CandleBatch | None = None
    below_zero: bool = False

    def read(self, answers: Sequence[AnswerRows]) -> Reading:
        """The answers in the order they came, as one; the later row of a slot wins."""
        extents = tuple(each.extent for each in answers)
        prepared = self._prepared(extents, BarRows.concat([each.rows for each in answers]))
        batch = prepared.batch
        doubts = doubtful(batch, self.before)
        if self.after_ms:
            doubts &= batch.ts >= self.after_ms
        return Reading(extents, prepared, batch.only(doubts))

    def _prepared(self, extents: Sequence[AnswerExtent], rows: BarRows) -> Prepared:
        """When every row is a valid bar, the answer reaches to its last row, which is beyond the
        request if the venue skipped empty slots. When any row is invalid its times cannot be
        trusted that far: then it ends with the requested window, and later rows belong to the next
        page.
        """
        asked, frame = extents[0].asked, self.timeframe
        ended_ms = closed_end_ms(frame, self.now_ms)
        covered = proven(extents, frame, ended_ms)
        reach_ms = max(each.to_ms for each in (asked, *proven(extents[:1], frame, ended_ms)))
        for end_ms in (reach_ms, asked.to_ms):
            window = Interval(asked.from_ms, end_ms)
            prepared = prepare(
                self._belonging(rows, window),
                timeframe=frame,
                asked=window,
                server_ms=self.now_ms,
                proven=clipped(covered, window),
                below_zero=self.below_zero,
            )
            if not prepared.rejected:
                break
        return prepared

    def _belonging(self, rows: BarRows, window: Interval) -> BarRows:
        """Without the rows of neighbouring pages; rows dated in the future stay, to be refused."""
        return rows.where(
            lambda ts: (ts >= window.from_ms) & ((ts < window.to_ms) | (ts > self.now_ms))
        )


def insisted(first: Reading, both: Reading, second: AnswerRows, timeframe: Timeframe) -> Reading:
    """Both answers together, without the doubtful bars that the second one does not repeat.

    Bars that it should have contained are refused; the slots of the others are left open.
    """
    lost = np.setdiff1d(first.doubtful.ts, second.rows.times)
    if not len(lost):
        return both
    prepared, again = both.prepared, second.extent.asked
    gone = unbroken(lost, timeframe)
    refused = first.doubtful.take(
        np.isin(first.doubtful.ts, lost)
        & (first.doubtful.ts >= again.from_ms)
        & (first.doubtful.ts < again.to_ms)
    )
    return replace(
        both,
        prepared=replace(
            prepared,
            batch=prepared.batch.take(~np.isin(prepared.batch.ts, lost)),
            covered=subtract(prepared.covered, gone),
            rejected=prepared.rejected + _not_repeated(refused),
        ),
    )


def _not_repeated(bars: CandleBatch) -> tuple[Rejected, ...]:
    return tuple(Rejected("not_repeated", row[0], tuple(row[:6])) for row in rows_of(bars))
