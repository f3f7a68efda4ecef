"""What can still be read from a damaged file, written again as page parts.

Every page of a file carries a checksum, so one wrong bit costs its row group and no other, as long
as the footer is intact. The recovered rows become parts of the series; each keeps the time it was
known at, so merging them restores what was there before. Parts are written before the damaged file
is set aside: a repair that dies in between is repeated, and a repeated row counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.market.interval import Interval, unbroken
from collector.store import footer as footers
from collector.store import layout
from collector.store.coverage import counted
from collector.store.part import PageEntry, encode_rows
from collector.store.port import Corrupt, Vanished
from collector.store.sealed import Sealed
from collector.store.segment import Segment, names_of
from collector.store.verification import check_rows, checked_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from collector.market.series import Series
    from collector.market.timeframe import Timeframe
    from collector.store.port import Storage

_GROUPS_AT_ONCE = 8
"""Row groups in one part, and in memory: some 180,000 rows."""


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was kept of a damaged file."""

    rows: int = 0
    claimed: tuple[Interval, ...] = ()
    """What the file covered, as far as it is still readable."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """Reads damaged files of one series."""

    storage: Storage
    series: Series
    unique: Callable[[], str]
    """A new random word for the name of a part."""

    def of_sealed(self) -> Salvaged:
        """The sound row groups of the sealed file, and the bars of the tail."""
        try:
            file = Sealed.of(self.storage, self.series)
        except (Vanished, Corrupt):
            return Salvaged(self._of_tail())
        try:
            claimed = tuple(each.interval for each in file.footer.coverage)
            rows = self._put_groups(file, claimed)
        finally:
            file.close()
        return Salvaged(rows + self._of_tail(), claimed)

    def of_versions(self, held: Callable[[int, int], NDArray[np.int64]]) -> int:
        """The sound row groups of the file of older versions, of bars that are still there.

        `held` returns the opening times of the bars in a range. An older version of a bar that is
        lost must not take its place.
        """
        path = layout.versions_path(self.series)
        try:
            file = Segment.open(self.storage, path, whose=footers.whose(self.series))
        except (Vanished, Corrupt):
            return 0
        kept = 0
        try:
            for group in range(file.groups):
                if not _is_sound(file, group):
                    continue
                table = file.read([group], names_of(self.series))
                ts = table["ts"].to_numpy()
                rows = table.filter(pa.array(np.isin(ts, held(int(ts[0]), int(ts[-1]) + 1))))
                kept += self._put(rows, _slots(rows, self.series.timeframe))
        finally:
            file.close()
        return kept

    def _put_groups(self, file: Sealed, claimed: tuple[Interval, ...]) -> int:
        sound = [group for group in range(file.groups) if _is_sound(file, group)]
        if len(sound) == file.groups or not claimed:
            return 0  # Every page is what was written and the whole is not: none can be trusted.
        kept = 0
        for groups in _runs(sound):
            # Coverage before the first bar and after the last one has no rows.
            start = 0 if groups[0] == 0 else file.bounds(groups[0])[0]
            last = groups[-1] == file.groups - 1
            end = claimed[-1].to_ms if last else file.bounds(groups[-1] + 1)[0]
            table = file.read(groups, names_of(self.series))
            kept += self._put(table, _within(claimed, start, end))
        return kept

    def _of_tail(self) -> int:
        path = layout.tail_path(self.series)
        try:
            file = Segment.open(self.storage, path, whose=footers.whose(self.series))
        except (Vanished, Corrupt):
            return 0
        try:
            check_rows(file, file.metadata("data_hash"))
            table = file.read(range(file.groups), names_of(self.series))
        except (Vanished, Corrupt):
            return 0
        finally:
            file.close()
        # Only bars: the tail does not record whether an empty slot was requested again since.
        return self._put(table, _slots(table, self.series.timeframe))

    def _put(self, table: pa.Table, covered: tuple[Interval, ...]) -> int:
        bars = table.filter(table["known_at"].is_valid())
        if not covered:
            return 0
        series = self.series
        ts = bars["ts"].to_numpy()
        first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (None, None)
        known_at = pc.max(bars["known_at"]).as_py() or 0
        page = PageEntry(0, len(bars), first, last, known_at, 0, counted(covered, np.unique(ts)))
        pages = [((series.symbol, series.timeframe.name), page)]
        data = encode_rows(series.exchange_id, self.unique(), bars, pages, made_at=0, replaces=())
        hull = Interval(covered[0].from_ms, covered[-1].to_ms)
        path = layout.part_path(layout.pages_folder(series), hull, 0, self.unique(), data)
        self.storage.write_atomic(path, data)
        return len(bars)


def _is_sound(file: Segment, group: int) -> bool:
    try:
        checked_group(file, group)
    except Corrupt:
        return False
    return True


def _runs(groups: Sequence[int]) -> Iterator[list[int]]:
    """Row groups that follow one another, a few at a time."""
    run: list[int] = []
    for group in groups:
        if run and (group != run[-1] + 1 or len(run) == _GROUPS_AT_ONCE):
            yield run
            run = []
        run.append(group)
    if run:
        yield run


def _within(intervals: Sequence[Interval], from_ms: int, to_ms: int) -> tuple[Interval, ...]:
    cut = ((max(each.from_ms, from_ms), min(each.to_ms, to_ms)) for each in intervals)
    return tuple(Interval(start, end) for start, end in cut if start < end)


def _slots(table: pa.Table, timeframe: Timeframe) -> tuple[Interval, ...]:
    """The slots of the bars in a table."""
    ts = np.unique(table["ts"].to_numpy()[table["known_at"].is_valid().to_numpy()])
    return unbroken(ts, timeframe)
