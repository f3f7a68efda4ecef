"""Which range a venue is asked about a second time before its answer is accepted. Pure.

At most one more request per page. It is about the range in doubt, and begins a bar or more before
it: a row there shows that the answer also covers what follows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from collector.market.interval import Interval
from collector.pipeline.proof import UNLIKELY_ROWS, density, proven

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe
    from collector.pipeline.prepare import Prepared
    from collector.pipeline.proof import AnswerExtent

MOST_BACK = 100
"""Slots before a range in which a row is looked for."""


def second_question(
    extent: AnswerExtent,
    prepared: Prepared,
    doubtful: Iterable[int],
    *,
    timeframe: Timeframe,
    ended_ms: int,
    after_ms: int = 0,
) -> Interval | None:
    """The range to request; None when the answer can be accepted as it is.

    `doubtful` are the times of valid bars that do not fit their neighbours. Slots before `after_ms`
    were accepted earlier, and slots from `ended_ms` on have not ended.
    """
    asked = extent.asked
    if asked.from_ms >= ended_ms:
        return None
    if extent.first_ms is None:
        return asked
    if _head_is_open(extent, timeframe, ended_ms, after_ms):
        back = math.ceil(
            UNLIKELY_ROWS / max(density([extent], timeframe), UNLIKELY_ROWS / MOST_BACK)
        )
        # Only the doubtful part of a full answer: the whole of it would be cut again.
        cut = extent.full and asked.from_ms < extent.first_ms < asked.to_ms
        end_ms = timeframe.end(extent.first_ms) if cut else asked.to_ms
        return Interval(timeframe.shift(asked.from_ms, -back), end_ms)
    starts = [*doubtful, *_refused(prepared, asked)]
    starts += _first_hole(prepared, timeframe, after_ms)
    starts += _silence(extent, prepared, ended_ms)
    if not starts:
        return None
    start_ms = timeframe.shift(max(min(starts), asked.from_ms), -1)
    as_long = timeframe.shift(start_ms, timeframe.count(asked.from_ms, asked.to_ms))
    return Interval(start_ms, max(as_long, asked.to_ms))


def _head_is_open(extent: AnswerExtent, timeframe: Timeframe, ended_ms: int, after_ms: int) -> bool:
    found = proven([extent], timeframe, ended_ms)
    begins_ms = found[0].from_ms if found else extent.asked.to_ms
    return min(begins_ms, ended_ms) > max(extent.asked.from_ms, after_ms)


def _refused(prepared: Prepared, asked: Interval) -> list[int]:
    """A row without a time may have been meant for any slot."""
    return [asked.from_ms if each.ts is None else each.ts for each in prepared.rejected]


def _first_hole(prepared: Prepared, timeframe: Timeframe, after_ms: int) -> list[int]:
    """The first slot from `after_ms` on that is covered and has no bar."""
    ts = prepared.batch.ts
    for each in prepared.covered:
        start = max(each.from_ms, after_ms)
        first, end = np.searchsorted(ts, (start, each.to_ms)).tolist()
        hole = _hole(ts[first:end], start, timeframe)
        if hole < each.to_ms:
            return [hole]
    return []


def _hole(ts: NDArray[np.int64], start_ms: int, timeframe: Timeframe) -> int:
    """The first slot from `start_ms` on that is not among the ascending `ts`."""
    first_ms = timeframe.next_open(start_ms - 1)
    expected = timeframe.opens(first_ms, timeframe.shift(first_ms, len(ts)) + 1)
    missing = np.flatnonzero(ts != expected[:-1])
    return int(expected[missing[0] if len(missing) else -1])


def _silence(extent: AnswerExtent, prepared: Prepared, ended_ms: int) -> list[int]:
    """Where an answer that was not full ends earlier than is likely."""
    end_ms = min(extent.asked.to_ms, ended_ms)
    reached_ms = max((each.to_ms for each in prepared.covered), default=end_ms)
    return [reached_ms] if not extent.full and reached_ms < end_ms else []
