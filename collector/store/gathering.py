"""Many small group parts into one.

Bars that are collected live make a part every few moments. A large series is not worth rewriting
for an hour's bars, but a read should not have to open a thousand files either. So the parts of an
exchange are put together into one, at the cost of their own rows whatever the history, and it
waits for the next compaction like any part.

A crash leaves the old parts, or both; folding a sighting twice changes nothing. What a sealed file
holds already is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from collector.market.interval import Interval, union
from collector.store import layout
from collector.store.coverage import counted
from collector.store.part import PageEntry, encode_rows, read_all
from collector.store.port import Corrupt, Vanished

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.store.part import Part
    from collector.store.port import Storage
    from collector.store.shelf import Shelf

LARGE_ROWS = 200_000
"""A part of this size is left as it is: putting it together again every hour gains nothing."""
MOST_ROWS = 1_000_000
"""In memory at a time."""

SeriesKey = tuple[str, str]
"""Symbol and timeframe."""


@dataclass(slots=True)
class _Pile:
    """What small parts hold of one series."""

    tables: list[pa.Table] = field(default_factory=list)
    entries: list[PageEntry] = field(default_factory=list)


def gather(
    storage: Storage,
    shelf: Shelf,
    exchange_id: str,
    merged: Callable[[SeriesKey], frozenset[str]],
    unique: Callable[[], str],
) -> tuple[str, ...]:
    """Returns the paths of the parts that one new part stands for; none for less than two.

    `merged` tells the names of the parts that a series' sealed file holds already.
    """
    small = _small_parts(storage, shelf, exchange_id)
    if len(small) < 2:
        return ()
    piles: dict[SeriesKey, _Pile] = {}
    taken = []
    for part in small:
        try:
            rows = read_all(storage, part)
        except (Vanished, Corrupt):
            continue  # Merged by someone else, or for a compaction to set aside.
        taken.append(part.path)
        name = part.path.rpartition("/")[2]
        for key in part.series():
            if name in merged(key):
                continue
            pile = piles.setdefault(key, _Pile())
            for entry in part.pages(*key):
                pile.entries.append(entry)
                pile.tables.append(rows.slice(entry.at, entry.rows))
    if piles:
        _write(storage, exchange_id, piles, unique)
    for path in taken:
        storage.delete(path)
        shelf.forget(path)
    return tuple(taken)


def _small_parts(storage: Storage, shelf: Shelf, exchange_id: str) -> list[Part]:
    """The oldest small parts, as many as fit into memory together."""
    folder = layout.groups_folder(exchange_id)
    found: list[Part] = []
    rows = 0
    for name in storage.names(folder):
        if layout.parse_part(folder, name) is None:
            continue
        try:
            part = shelf.part(f"{folder}/{name}")
        except (Vanished, Corrupt):
            continue
        if part.rows >= LARGE_ROWS:
            continue
        rows += part.rows
        if rows > MOST_ROWS:
            break
        found.append(part)
    return found


def _write(
    storage: Storage,
    exchange_id: str,
    piles: dict[SeriesKey, _Pile],
    unique: Callable[[], str],
) -> None:
    tables, pages, at = [], [], 0
    for key in sorted(piles):
        rows = pa.concat_tables(piles[key].tables)
        rows = rows.sort_by([("ts", "ascending"), ("known_at", "ascending")])
        tables.append(rows)
        pages.append((key, _one_page(at, rows, piles[key].entries)))
        at += len(rows)
    known_at = max(page.known_at for _, page in pages)
    data = encode_rows(exchange_id, unique(), tables, pages)
    hull = _hull(page for _, page in pages)
    folder = layout.groups_folder(exchange_id)
    storage.write_atomic(layout.part_path(folder, hull, known_at, unique(), data), data)


def _one_page(at: int, rows: pa.Table, entries: list[PageEntry]) -> PageEntry:
    """Several answers as one: as new as the newest of them. Each row keeps its own moment."""
    ts = np.unique(rows["ts"].to_numpy())
    first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (None, None)
    return PageEntry(
        at,
        len(rows),
        first,
        last,
        known_at=max(entry.known_at for entry in entries),
        fence=max(entry.fence for entry in entries),
        covered=counted(union(c.interval for e in entries for c in e.covered), ts),
    )


def _hull(pages: Iterable[PageEntry]) -> Interval:
    covered = [page.covered for page in pages]
    return Interval(
        min(each[0].from_ms for each in covered), max(each[-1].to_ms for each in covered)
    )
