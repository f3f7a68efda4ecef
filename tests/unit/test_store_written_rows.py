"""History that a store has just written is merged from memory; new bars are not kept there."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from collector.store.disk import LocalDisk
from collector.store.page import Page
from collector.store.segment import ROWS_PER_GROUP
from collector.store.store import Store
from tests.support.bars import BTC, flat, span

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


class Watched(LocalDisk):
    """A disk that records which files are opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.opened: list[str] = []

    def open(self, path: str) -> Any:
        self.opened.append(path)
        return super().open(path)


def page(first: int, bars: int, known_at: int) -> Page:
    covered = span(first, first + bars)
    return Page.of(BTC, flat(first, bars), covered, fence=1, known_at=known_at)


def test_written_history_is_merged_without_reading_it_back(tmp_path: Path) -> None:
    disk = Watched(tmp_path)
    store, long = Store(disk), ROWS_PER_GROUP // 2
    # In the order their answers came, and more than a row group of a part holds.
    path = store.append_group([page(at * long, long, at) for at in (2, 0, 1)])
    store.compact(BTC)
    assert path not in disk.opened
    again = Store(tmp_path)
    kept = store.rows(BTC, 0, 10**15), again.rows(BTC, 0, 10**15)
    assert kept[0].equals(kept[1])
    assert len(kept[0]) == 3 * long
    twin = Store(tmp_path / "twin")
    twin.append_group([page(at * long, long, at) for at in (2, 0, 1)])
    Store(tmp_path / "twin").compact(BTC)
    assert twin.rows(BTC, 0, 10**15).equals(kept[0]), "from memory or from the part"


def test_pages_of_new_bars_are_not_kept_in_memory(tmp_path: Path) -> None:
    disk = Watched(tmp_path)
    store = Store(disk)
    path = store.append_group([page(at, 1, at) for at in range(5)])
    store.compact(BTC)
    assert path in disk.opened


def test_written_rows_leave_memory_with_their_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = store.append_group([page(0, ROWS_PER_GROUP + 1, 1)])
    kept = store._shelf._tables
    rows = [weakref.ref(kept.get((path, group))) for group in (0, 1)]
    store.compact(BTC)
    assert all(row() is not None for row in rows)
    assert store.sweep(BTC.exchange_id) == (path,)
    assert [row() for row in rows] == [None, None]
