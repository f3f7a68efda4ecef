"""One pair's months in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.history.bucket_columns import BucketColumns
from collector.history.month import Month, month_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.history.bucket import Bucket

KEPT = 3
"""Months that stay in memory because they were requested."""


class PairBuckets:
    """Not safe for many threads by itself: History holds its lock around every step."""

    def __init__(
        self,
        load: Callable[[int], tuple[BucketColumns, bool]],
        months: Iterable[int] = (),
        last_price: int | None = None,
    ) -> None:
        self.load = load
        self.months: dict[int, Month | None] = dict.fromkeys(months)
        """None: saved, and not loaded."""
        self.changed: set[int] = set()
        self.last_price = last_price
        self._loaded: list[int] = []

    def copy(self) -> PairBuckets:
        """Months are never changed, so both may have them."""
        made = PairBuckets(self.load, (), self.last_price)
        made.months, made.changed = dict(self.months), set(self.changed)
        made._loaded = list(self._loaded)
        return made

    def find(self, ts: int) -> Bucket | None:
        return self.month(month_of(ts)).find(ts)

    def install(self, month: int, made: Month) -> None:
        self.months[month] = made
        self.changed.add(month)

    def month(self, month: int) -> Month:
        """Loaded if it has to be; an empty one when there is none."""
        if month not in self.months:
            return Month()
        held = self.months[month]
        if held is None:
            columns, is_saved = self.load(month)
            held = self.months[month] = Month.of(columns)
            if not is_saved:
                self.changed.add(month)
            self._loaded.append(month)
            self._forget_oldest()
        return held

    def _forget_oldest(self) -> None:
        """A walk through years must not leave all of them in memory."""
        while len(self._loaded) > KEPT:
            month = self._loaded.pop(0)
            if month not in self.changed:
                self.months[month] = None

    def last_before(self, ts: int) -> Bucket | None:
        """The newest bucket that begins before `ts`."""
        for month in sorted(self.months, reverse=True):
            if month <= month_of(min(ts, 1 << 48)):
                found = self.month(month).last_before(ts)
                if found is not None:
                    return found
        return None

    def between(self, from_ms: int, to_ms: int) -> BucketColumns:
        first, last = month_of(from_ms), month_of(min(to_ms, 1 << 48))
        months = sorted(month for month in self.months if first <= month <= last)
        found = [self.month(month).between(from_ms, to_ms) for month in months]
        return BucketColumns.concat([each for each in found if len(each)])

    def saved(self) -> None:
        """Everything is saved: only the newest month stays in memory."""
        self.changed.clear()
        self._loaded.clear()
        kept = {month for month, held in self.months.items() if held is None or len(held)}
        newest = max(kept, default=None)
        self.months = {
            month: self.months[month] if month == newest else None for month in sorted(kept)
        }
