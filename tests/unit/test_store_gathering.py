"""Small parts put together: fewer files, the same series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock
from collector.market.interval import Interval
from collector.store.disk import LocalDisk
from collector.store.gathering import KEPT_MS
from collector.store.page import Page
from collector.store.port import StorageFault
from collector.store.shelf import Shelf
from collector.store.snapshot import SeriesSnapshot
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, bars, span

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from collector.market.series import Series


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Store:
    return Store(tmp_path, clock=clock)


def group(store: Store, prices: dict[Series, dict[int, float]], end: int, known_at: int) -> None:
    pages = []
    for series, its in prices.items():
        covered = Interval(at(min(its)), at(end))
        pages.append(Page.of(series, bars(its), covered, fence=known_at, known_at=known_at))
    store.append_group(pages)


def files(root: Path) -> list[str]:
    return sorted(path.name for path in (root / "binance" / "parts").glob("*.parquet"))


def everything(store: Store) -> list[pa.Table | tuple[object, ...]]:
    told: list[pa.Table | tuple[object, ...]] = []
    for series in (BTC, ETH):
        told += [store.rows(series, 0, at(100), as_of=moment) for moment in (None, 1, 2, 3)]
        told.append(store.coverage(series))
        told.append((store.cursor(series), store.span(series)))
    return told


def live(store: Store) -> None:
    group(store, {BTC: {0: 10.0}, ETH: {0: 20.0}}, 1, known_at=1)
    group(store, {BTC: {1: 11.0}}, 4, known_at=2)
    group(store, {ETH: {1: 21.0, 2: 22.0}, BTC: {0: 15.0}}, 3, known_at=3)
    group(store, {BTC: {7: 17.0}}, 8, known_at=3)


def test_one_part_says_what_many_said(store: Store, tmp_path: Path) -> None:
    live(store)
    old, before = files(tmp_path), everything(store)
    assert store.gather("binance") == 4
    [new] = set(files(tmp_path)) - set(old)
    for name in old:
        (tmp_path / "binance" / "parts" / name).unlink()
    assert files(tmp_path) == [new]
    assert everything(store) == before
    assert everything(Store(tmp_path)) == before
    assert store.gather("binance") == 0


def test_the_old_parts_go_with_a_later_gathering(
    store: Store, tmp_path: Path, clock: ManualClock
) -> None:
    live(store)
    before = everything(store)
    store.gather("binance")
    assert len(files(tmp_path)) == 5
    store.gather("binance")
    assert len(files(tmp_path)) == 5, "a listing that began before may still need them"
    clock.advance(KEPT_MS / 1000)
    assert store.gather("binance") == 0
    assert len(files(tmp_path)) == 1
    assert everything(store) == everything(Store(tmp_path)) == before


def test_rows_that_lie_in_both_are_read_once(store: Store, tmp_path: Path) -> None:
    live(store)
    store.gather("binance")
    with SeriesSnapshot(store.storage, Shelf(store.storage), BTC) as seen:
        assert len(seen.unmerged()) == 1


def test_it_is_compacted_and_swept_like_any_part(store: Store, tmp_path: Path) -> None:
    live(store)
    before = [store.rows(series, 0, at(100)) for series in (BTC, ETH)]
    store.gather("binance")
    for series in (BTC, ETH):
        store.compact(series)
    store.sweep("binance")
    assert files(tmp_path) == []
    assert [store.rows(series, 0, at(100)) for series in (BTC, ETH)] == before


def test_what_is_sealed_is_left_out(store: Store) -> None:
    live(store)
    store.compact(BTC)
    before = everything(store)
    store.gather("binance")
    assert everything(store) == before
    assert store.compact(BTC) is None, "nothing of it is left in the gathered part"
    assert store.compact(ETH) is not None


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        (point, nth)
        for point in StorageFault
        for nth in (1, 3)
        if nth == 1 or "delete" in point.value
    ],
)
def test_a_crash_at_any_point_changes_nothing(
    tmp_path: Path, point: StorageFault, nth: int
) -> None:
    class Cut(BaseException):
        pass

    live(Store(tmp_path))
    before = everything(Store(tmp_path))
    seen = 0

    def cut(here: StorageFault, _path: str) -> None:
        nonlocal seen
        seen += here is point
        if here is point and seen == nth:
            raise Cut

    def gather_twice() -> None:
        clock = ManualClock()
        dying = Store(LocalDisk(tmp_path, faults=cut), clock=clock)
        dying.gather("binance")
        clock.advance(KEPT_MS / 1000)
        dying.gather("binance")

    with pytest.raises(Cut):
        gather_twice()
    assert everything(Store(tmp_path)) == before
    Store(tmp_path).gather("binance")
    assert everything(Store(tmp_path)) == before


def test_a_damaged_part_is_left_for_compaction(store: Store, tmp_path: Path) -> None:
    live(store)
    broken = tmp_path / "binance" / "parts" / files(tmp_path)[0]
    broken.write_bytes(broken.read_bytes()[:-20])
    assert Store(tmp_path).gather("binance") == 3
    assert broken.exists()


def test_an_answer_without_bars_still_counts(store: Store) -> None:
    group(store, {BTC: {0: 10.0}}, 1, known_at=1)
    store.append_group([Page.of(BTC, bars({}), span(1, 5), fence=1, known_at=2)])
    store.append_group([Page.of(ETH, bars({}), span(1, 5), fence=1, known_at=2)])
    before = everything(store)
    store.gather("binance")
    assert everything(store) == before
