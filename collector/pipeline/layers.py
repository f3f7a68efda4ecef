"""Two calendars of one series laid over each other, slot by slot.

The same bars may be known twice: as the exchange sends them, and made of shorter ones. In each slot
the better row stays: a whole bar before a partial one, either before a filler, and a filler that an
answer covers before one that is missing. Of equals the upper one stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.market.candles import BAR, MISSING, NO_TRADE, CandleBatch
from collector.market.labels import Labels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.market.timeframe import Timeframe

_NOTHING = 4


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Rows of every slot, as `calendar` makes them, with their versions and sources."""

    batch: CandleBatch
    ver: NDArray[np.int32]
    source: Labels

    def __len__(self) -> int:
        return len(self.batch)

    @classmethod
    def of_nothing(cls) -> Layer:
        return cls.by("", CandleBatch.empty(), np.zeros(0, dtype=np.int32))

    @classmethod
    def by(cls, source: str, batch: CandleBatch, ver: NDArray[np.int32]) -> Layer:
        """All of it from one source."""
        return cls(batch, ver, Labels.repeated([source], [len(batch)]))

    def then(self, later: Layer) -> Layer:
        """These rows and those that follow them."""
        return Layer(
            CandleBatch.concat([self.batch, later.batch]),
            np.concatenate((self.ver, later.ver)),
            Labels.concat([self.source, later.source]),
        )

    def take(self, rows: NDArray[np.intp]) -> Layer:
        return Layer(self.batch.take(rows), self.ver[rows], self.source.take(rows))

    def is_whole_over(self, span: Interval, timeframe: Timeframe) -> bool:
        """Whether every slot of `span` is a whole bar, so that nothing below could add to it."""
        return len(self) == timeframe.count(span.from_ms, span.to_ms) and not self.batch.gap.any()


def overlay(
    upper: Layer, lower: Layer, timeframe: Timeframe, carried: float | None = None
) -> Layer:
    """The better row of each slot, from the first to the last row of both.

    A filler carries the close of the last bar before it, and `carried` where there is none among
    these rows. A slot that neither has is MISSING.
    """
    if not len(upper) or not len(lower):
        only = upper if len(upper) else lower
        return _filled(only, only.batch.ts, np.zeros(len(only), dtype=np.bool_), carried)
    first = min(int(upper.batch.ts[0]), int(lower.batch.ts[0]))
    last = max(int(upper.batch.ts[-1]), int(lower.batch.ts[-1]))
    slots = timeframe.opens(first, last + 1)
    if timeframe.slots is not None:
        slots = np.union1d(slots, np.concatenate((upper.batch.ts, lower.batch.ts)))
    both = (upper, lower)
    ranks = [_ranks(layer, slots) for layer in both]
    rows = [_rows(layer, slots) for layer in both]
    takes_lower = ranks[1] < ranks[0]
    chosen = upper.then(lower).take(np.where(takes_lower, rows[1] + len(upper), rows[0]))
    nothing = np.minimum(*ranks) == _NOTHING
    return _filled(chosen, slots, nothing, carried)


def _rows(layer: Layer, slots: NDArray[np.int64]) -> NDArray[np.intp]:
    """Each slot's place in the layer; the nearest one where the layer has no such slot."""
    ts = layer.batch.ts
    first, last = np.searchsorted(slots, ts[[0, -1]]).tolist()
    if last - first + 1 == len(ts):
        at = np.arange(len(slots)) - first
    else:  # A bar that came in closed time stands in one layer and not in the other.
        at = np.searchsorted(ts, slots)
    near: NDArray[np.intp] = np.clip(at, 0, len(layer) - 1)
    return near


def _ranks(layer: Layer, slots: NDArray[np.int64]) -> NDArray[np.int8]:
    """How good the layer's row of each slot is: the smaller the better."""
    gap = layer.batch.gap
    quality = np.ones(len(layer), dtype=np.int8)
    quality[gap == BAR] = 0
    quality[gap == NO_TRADE] = 2
    quality[gap == MISSING] = 3
    rows = _rows(layer, slots)
    return np.where(layer.batch.ts[rows] != slots, np.int8(_NOTHING), quality[rows])


def _filled(
    chosen: Layer, slots: NDArray[np.int64], nothing: NDArray[np.bool_], carried: float | None
) -> Layer:
    """The rows with every filler carrying the last close before it."""
    batch = chosen.batch
    filler = nothing | batch.filler
    if not filler.any():
        return chosen
    bars = np.flatnonzero(~filler)
    behind = np.searchsorted(bars, np.arange(len(slots)), side="right") - 1
    close = batch.c.copy()
    if len(bars):
        led = filler & (behind >= 0)
        close[led] = batch.c[bars[behind[led]]]
    if carried is not None:
        close[filler & (behind < 0)] = carried
    none_turned = np.where(np.isnan(batch.t), np.nan, 0.0)
    whole = CandleBatch(
        slots,
        np.where(filler, close, batch.o),
        np.where(filler, close, batch.h),
        np.where(filler, close, batch.l),
        close,
        np.where(filler, 0.0, batch.v),
        np.where(filler, none_turned, batch.t),
        np.where(nothing, np.int8(MISSING), batch.gap).astype(np.int8),
        {name: np.where(filler, np.nan, each) for name, each in batch.extra.items()},
    )
    return Layer(whole, np.where(filler, np.int32(1), chosen.ver), chosen.source)
