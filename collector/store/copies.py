"""What a compaction writes beside the sealed file: longer timeframes, and the tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.timeframe import MINUTE, Timeframe
from collector.store.derived import DerivedWriters
from collector.store.tail import Tail

if TYPE_CHECKING:
    from contextlib import ExitStack

    import pyarrow as pa

    from collector.market.series import Series
    from collector.store.port import Storage
    from collector.store.sealed import SealedFooter
    from collector.store.shelf import Shelf

DEFAULT_TIMEFRAMES = tuple(Timeframe.parse(name) for name in ("5m", "15m", "1h"))


@dataclass(frozen=True, slots=True)
class Copies:
    """Which ones to keep. Only minutes have copies."""

    timeframes: tuple[Timeframe, ...] = ()
    tail_days: int = 0

    def begin(
        self, storage: Storage, shelf: Shelf, series: Series, stack: ExitStack
    ) -> CopyWriters:
        minutes = series.timeframe == MINUTE
        longer = DerivedWriters(storage, shelf, series, self.timeframes if minutes else (), stack)
        tail = Tail(series, self.tail_days) if minutes and self.tail_days else None
        return CopyWriters(storage, series, longer, tail)


class CopyWriters:
    """The copies of one series, being written."""

    def __init__(
        self, storage: Storage, series: Series, longer: DerivedWriters, tail: Tail | None
    ) -> None:
        self._storage = storage
        self._series = series
        self._longer = longer
        self._tail = tail
        self._now_ms = 0

    def write(self, table: pa.Table) -> None:
        """The next rows of the calendar, as SEGMENT_SCHEMA."""
        self._longer.write(table)
        if self._tail is not None:
            self._tail.write(table)

    def finish(self, now_ms: int, source: SealedFooter) -> None:
        """No more rows."""
        self._now_ms = now_ms
        self._longer.finish(now_ms, source, self._series.timeframe)

    def commit(self) -> None:
        """Puts everything in place. The sealed file must be there already."""
        self._longer.commit()
        if self._tail is not None:
            self._tail.put(self._storage, self._now_ms)
