"""The grid of a market: every bar that is expected while it is open, and its fillers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import MISSING, NO_TRADE, CandleBatch
from collector.market.interval import Interval, covers, unbroken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from collector.market.timeframe import Timeframe


@dataclass(frozen=True, slots=True)
class Gaps:
    """The empty slots of a range: covered by an answer, or still missing."""

    no_trade: tuple[Interval, ...]
    missing: tuple[Interval, ...]


def grid(timeframe: Timeframe, span: Interval) -> NDArray[np.int64]:
    """The opening time of every bar in `span`, which starts on one; closed time has none."""
    return timeframe.opens(span.from_ms, span.to_ms)


def gaps(
    ts: NDArray[np.int64], timeframe: Timeframe, span: Interval, covered: Sequence[Interval]
) -> Gaps:
    """The slots of `span` at which no bar of `ts` opens. `covered` is ascending and disjoint."""
    slots = grid(timeframe, span)
    empty = slots[~np.isin(slots, ts, assume_unique=True)]
    answered = covers(covered, empty)
    return Gaps(
        no_trade=unbroken(empty[answered], timeframe), missing=unbroken(empty[~answered], timeframe)
    )


def calendar(
    batch: CandleBatch,
    timeframe: Timeframe,
    span: Interval,
    covered: Sequence[Interval],
    before: CandleBatch | None = None,
) -> CandleBatch:
    """`batch` with a filler in every empty slot of `span`: the last close and no volume.

    `batch` is ascending, one bar a time, all of them inside `span`. `before` is the last bar before
    it, if there is one; without it the grid starts at the first bar, since there is no close to
    carry. A filler is NO_TRADE where `covered` holds its slot and MISSING elsewhere. A bar that
    came in closed time is kept.
    """
    if before is None:
        if not len(batch):
            return batch
        span = Interval(int(batch.ts[0]), span.to_ms)
    slots = grid(timeframe, span)
    if timeframe.slots is not None:
        slots = np.union1d(slots, batch.ts)
    if len(slots) == len(batch):
        return batch
    known = batch if before is None else CandleBatch.concat([before, batch])
    behind = np.searchsorted(known.ts, slots, side="right") - 1
    empty = known.ts[behind] != slots
    close = known.c[behind]
    turnover = known.t[behind]
    # Where nothing traded the turnover is zero, unless this venue never reports turnover.
    none_turned = np.where(np.isnan(turnover), np.nan, 0.0)
    reason = np.where(covers(covered, slots), np.int8(NO_TRADE), np.int8(MISSING))
    return CandleBatch(
        slots,
        np.where(empty, close, known.o[behind]),
        np.where(empty, close, known.h[behind]),
        np.where(empty, close, known.l[behind]),
        close,
        np.where(empty, 0.0, known.v[behind]),
        np.where(empty, none_turned, turnover),
        np.where(empty, reason, known.gap[behind]).astype(np.int8),
        {name: np.where(empty, np.nan, each[behind]) for name, each in known.extra.items()},
    )
