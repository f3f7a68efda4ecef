"""What answers cover of many series, read from footers alone. Waits for the disk."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING

from collector.market.interval import Interval, union
from collector.pipeline.resample import divides
from collector.store.port import Corrupt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.market.series import Series
    from collector.store.store import Store


@dataclass(frozen=True, slots=True)
class SeriesLedger:
    """One collected series, and what answers cover of it; also answers about shorter bars."""

    series: Series
    covered: tuple[Interval, ...]
    is_damaged: bool = False
    """A file of it cannot be read, so nothing is known."""


def ledgers(store: Store, series: Iterable[Series]) -> Iterator[SeriesLedger]:
    """Of those that were collected, in order. Files of made bars are no series of their own.

    `series` come from `Store.series`, which has listed the parts, and are in its order.
    """
    for _, its in groupby(series, lambda each: (each.exchange_id, each.symbol)):
        own: dict[Series, tuple[Interval, ...]] = {}
        damaged: set[Series] = set()
        for each in its:
            own[each] = ()
            damaged.add(each)
            with suppress(Corrupt):
                own[each] = store.covered(each, listed=True)
                damaged.discard(each)
        for each, covered in own.items():
            if each in damaged:
                yield SeriesLedger(each, (), is_damaged=True)
            elif covered:
                frame = each.timeframe
                shorter = (
                    also
                    for other, also in own.items()
                    if other.timeframe < frame and divides(other.timeframe, frame)
                )
                yield SeriesLedger(each, union(chain(covered, *shorter)))
