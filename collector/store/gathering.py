"""Many small group parts into one.

Live collecting writes a part every few moments. A large series is not worth rewriting for an hour's
bars, but a read should not have to open a thousand files either. So the parts of an exchange are
merged into one, which costs only their own rows, and it waits for the next compaction like any
part.

The new part names those it replaces, and they are deleted by a later gathering: a reader may be in
the middle of a listing that began before the new part was there, and must still find the old ones.
One that sees both takes the new one. A crash leaves the old parts, or both; merging a row twice
changes nothing. What a sealed file holds already is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from collector.market.interval import Interval, union
from collector.store import layout
from collector.store.coverage import counted
from collector.store.part import PageEntry, encode_rows, read_all
from collector.store.port import Corrupt, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from collector.store.packed_part import PackedPart
    from collector.store.part_index import PartIndex, SeriesKey
    from collector.store.port import Storage
    from collector.store.shelf import Shelf

LARGE_ROWS = 200_000
"""A part of this size is left as it is: merging it again every hour gains nothing."""
MOST_ROWS = 300_000
"""In memory at a time: some 35 MB, twice while they are sorted."""
KEPT_MS = 60_000
"""A part that another one replaces is kept at least this long: longer than any listing takes."""

_PIECES = 100


def gather(
    storage: Storage,
    shelf: Shelf,
    exchange_id: str,
    merged: Callable[[SeriesKey], frozenset[str]],
    unique: Callable[[], str],
    now_ms: int,
) -> tuple[str, ...]:
    """Returns the paths of the parts that one new part replaces; none for less than two.

    `merged` returns the names of the parts that a series' sealed file holds already.
    """
    index = shelf.index(exchange_id)
    index.refresh()
    found = {part.name: part for part in index.parts()}
    stood_for = {name: part.made_at for part in found.values() for name in part.replaces}
    for name in stood_for.keys() & found.keys():
        if now_ms - stood_for[name] >= KEPT_MS:
            storage.delete(found[name].path)
            shelf.forget(found[name].path)
    small = _small([part for part in found.values() if part.name not in stood_for])
    if len(small) < 2:
        return ()
    pile = _Pile(storage, index, merged)
    taken = [part for part in small if pile.add(part)]
    if len(taken) < 2 or not pile.has_pages:
        return ()
    rows, pages = pile.sorted()
    names = [part.name for part in taken]
    data = encode_rows(exchange_id, unique(), rows, pages, made_at=now_ms, replaces=names)
    known_at = max(page.known_at for _, page in pages)
    hull = _hull(page for _, page in pages)
    folder = layout.groups_folder(exchange_id)
    storage.write_atomic(layout.part_path(folder, hull, known_at, unique(), data), data)
    return tuple(part.path for part in taken)


def _small(parts: Sequence[PackedPart]) -> list[PackedPart]:
    """The oldest small parts, as many as fit into memory together."""
    chosen: list[PackedPart] = []
    rows = 0
    for part in parts:
        if part.rows >= LARGE_ROWS:
            continue
        rows += part.rows
        if rows > MOST_ROWS:
            break
        chosen.append(part)
    return chosen


class _Pile:
    """What several parts hold of each series, by the column: there are thousands of pages."""

    def __init__(
        self,
        storage: Storage,
        index: PartIndex,
        merged: Callable[[SeriesKey], frozenset[str]],
    ) -> None:
        self._storage = storage
        self._index = index
        self._merged = merged
        self._tables: list[pa.Table] = []
        self._lines: list[NDArray[np.void]] = []
        """The pages, in the order of their rows in the tables."""
        self._covered: list[NDArray[np.int64]] = []
        """Series, from and to of every stretch they cover."""

    @property
    def has_pages(self) -> bool:
        return any(len(lines) for lines in self._lines)

    def add(self, part: PackedPart) -> bool:
        """False when it is gone or damaged: another process merged it, or compaction finds it."""
        kept = [
            number
            for number in part.series()
            if part.name not in self._merged(self._index.key_of(number))
        ]
        lines = part.lines[np.isin(part.lines["series"], kept)]
        lines = lines[np.argsort(lines["at"])]
        try:
            table = self._rows(part, lines)
        except (Vanished, Corrupt):
            return False
        series = part.covered_series()
        covered = np.column_stack([series.astype(np.int64), part.covered[:, :2]])
        self._tables.append(table)
        if len(self._tables) > _PIECES:
            # A small table takes many times the memory of its rows.
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        self._lines.append(lines)
        self._covered.append(covered[np.isin(series, kept)])
        return True

    def _rows(self, part: PackedPart, lines: NDArray[np.void]) -> pa.Table:
        table = read_all(self._storage, part.path)
        counts = lines["rows"].astype(np.int64)
        if len(table) == counts.sum():
            return table
        starts = np.repeat(lines["at"] - np.cumsum(counts) + counts, counts)
        return table.take(pa.array(starts + np.arange(counts.sum())))

    def sorted(self) -> tuple[pa.Table, list[tuple[SeriesKey, PageEntry]]]:
        """All rows by series, time and moment, and one page for each series."""
        rows = pa.concat_tables(self._tables).combine_chunks()
        self._tables.clear()
        lines, covered = np.concatenate(self._lines), np.concatenate(self._covered)
        numbers = sorted(set(lines["series"].tolist()), key=self._index.key_of)
        rank = np.zeros(max(numbers) + 1, dtype=np.int64)
        rank[numbers] = np.arange(len(numbers))
        series, ts = rank[np.repeat(lines["series"], lines["rows"])], rows["ts"].to_numpy()
        order = np.lexsort((rows["known_at"].to_numpy(), ts, series))
        ts = _split(ts[order], series[order], len(numbers))
        newest, fence = np.zeros((2, len(numbers)), dtype=np.int64)
        np.maximum.at(newest, rank[lines["series"]], lines["known_at"])
        np.maximum.at(fence, rank[lines["series"]], lines["fence"])
        whose = rank[covered[:, 0]]
        by_series = np.argsort(whose, kind="stable")
        ledgers = _split(covered[by_series, 1:], whose[by_series], len(numbers))
        pages, at = [], 0
        for place, number in enumerate(numbers):
            moments = (int(newest[place]), int(fence[place]))
            page = _one_page(at, ts[place], ledgers[place], *moments)
            pages.append((self._index.key_of(number), page))
            at += page.rows
        return rows.take(pa.array(order)), pages


def _split(values: NDArray[Any], ranks: NDArray[np.int64], count: int) -> list[NDArray[Any]]:
    """The values of each rank; both ascend by rank."""
    return np.split(values, np.searchsorted(ranks, np.arange(1, count)))


def _one_page(
    at: int, times: NDArray[np.int64], covered: NDArray[np.int64], known_at: int, fence: int
) -> PageEntry:
    """Several answers as one: as new as the newest of them. Each row keeps its own moment."""
    ts = np.unique(times)
    first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (None, None)
    whole = union(Interval(*each) for each in covered.tolist())
    return PageEntry(at, len(times), first, last, known_at, fence, counted(whole, ts))


def _hull(pages: Iterable[PageEntry]) -> Interval:
    covered = [page.covered for page in pages]
    return Interval(
        min(each[0].from_ms for each in covered), max(each[-1].to_ms for each in covered)
    )
