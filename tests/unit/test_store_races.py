"""Compactions and readers that meet in the middle of their work."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.store.page import Page
from collector.store.port import StorageFault, Swapped
from tests.support.bars import BTC, at, bars, span

if TYPE_CHECKING:
    from collector.market.interval import Interval
    from collector.store.store import Store
    from tests.support.lakes import Lake

SEALED = "binance/BTC-USDT/1m.parquet"


def put(store: Store, prices: dict[int, float], covered: Interval, known_at: int) -> None:
    store.append_page(BTC, bars(prices), covered, fence=1, known_at=known_at)


def one_row(store: Store, slot: int, **how: Any) -> dict[str, Any]:
    row: dict[str, Any] = store.rows(BTC, at(slot), at(slot + 1), **how).to_pylist()[0]
    return row


def test_a_compaction_that_was_frozen_does_not_undo_a_newer_one(lake: Lake) -> None:
    quick = lake.store()
    put(quick, {0: 1.0}, span(0, 1), 1)
    put(quick, {0: 2.0}, span(0, 1), 2)

    def meanwhile(point: StorageFault, path: str) -> None:
        if point is StorageFault.BEFORE_FSYNC and path == SEALED and not done:
            done.append(True)
            put(quick, {0: 3.0, 1: 7.0}, span(0, 2), 3)
            quick.compact(BTC)

    done: list[bool] = []
    frozen = lake.store(meanwhile)
    with pytest.raises(Swapped):
        frozen.compact(BTC)
    assert done
    assert quick.rows(BTC, at(0), at(2))["o"].to_pylist() == [3.0, 7.0]
    assert one_row(quick, 0)["ver"] == 3
    assert checksum_holds(lake)


class Killed(BaseException):
    """Not an Exception, so that nothing tidies up on its way: as after kill -9."""


def test_the_checksum_of_a_compaction_that_died_is_mended_without_anything_to_merge(
    lake: Lake,
) -> None:
    """It merged the parts of another compaction once more, which deleted them in the meantime."""
    died = []

    def dying(point: StorageFault, path: str) -> None:
        if point is StorageFault.BEFORE_RENAME and path == SEALED:
            raise Killed

    def meanwhile(point: StorageFault, path: str) -> None:
        if point is StorageFault.BEFORE_DELETE and "/parts/" in path and not died:
            died.append(path)
            with pytest.raises(Killed):
                lake.store(dying, ManualClock(2_000)).compact(BTC)

    put(lake.store(), {0: 1.0}, span(0, 1), 1)
    lake.store(meanwhile, ManualClock(1_000)).compact(BTC)
    assert died
    assert not checksum_holds(lake)
    store = lake.store()
    assert store.compact(BTC) is None
    assert checksum_holds(lake)
    before = lake.read(f"{SEALED}.sha256")
    assert store.compact(BTC) is None
    assert lake.read(f"{SEALED}.sha256") == before


def test_a_checksum_is_not_put_beside_another_file(lake: Lake) -> None:
    store = lake.store()
    put(store, {0: 1.0}, span(0, 1), 1)
    store.compact(BTC)
    old = store.storage.stamp(SEALED)
    assert old is not None
    put(store, {1: 1.0}, span(1, 2), 2)
    store.compact(BTC)
    with pytest.raises(Swapped):
        store.storage.write_beside(SEALED, old, (f"{SEALED}.sha256", b"of the old one"))
    assert checksum_holds(lake)


def checksum_holds(lake: Lake) -> bool:
    digest = lake.read(f"{SEALED}.sha256").decode().split()[0]
    return digest == hashlib.sha256(lake.read(SEALED)).hexdigest()


def test_a_reader_whose_part_was_merged_meanwhile_looks_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = lake.store(), lake.store()
    put(store, {0: 1.0, 1: 2.0}, span(0, 2), 1)
    look, looks = store._shelf.rows, []

    def merged_first(*args: Any) -> Any:
        looks.append(1)
        other.compact(BTC)
        return look(*args)

    monkeypatch.setattr(store._shelf, "rows", merged_first)
    assert store.rows(BTC, at(0), at(2))["o"].to_pylist() == [1.0, 2.0]
    assert looks == [1]


def test_a_reader_lists_parts_before_it_opens_the_sealed_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction between the two steps must not hide what it merged."""
    store, other = lake.store(), lake.store()
    put(store, {0: 1.0, 1: 2.0}, span(0, 2), 1)
    names = store.storage.names
    done: list[object] = []

    def merged_first(folder: str) -> list[str]:
        if not done:
            done.append(other.compact(BTC))
        return names(folder)

    monkeypatch.setattr(store.storage, "names", merged_first)
    assert store.rows(BTC, at(0), at(2))["o"].to_pylist() == [1.0, 2.0]
    assert done[0] is not None


def test_a_gathering_in_the_middle_of_a_listing_hides_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing is not one moment: it may miss what came and what went while it lasted."""
    store, other = lake.store(), lake.store()
    for slot in range(4):
        page = Page.of(BTC, bars({slot: 1.0 + slot}), span(slot, slot + 1), fence=1, known_at=slot)
        store.append_group([page])
    names, gathered = store.storage.names, []

    def slow(folder: str) -> list[str]:
        before = names(folder)
        if folder == "binance/parts" and not gathered:
            gathered.append(other.gather("binance"))
        after = names(folder)
        return [name for name in before if name in after]

    monkeypatch.setattr(store.storage, "names", slow)
    assert store.rows(BTC, at(0), at(4))["o"].to_pylist() == [1.0, 2.0, 3.0, 4.0]
    assert gathered == [4]


def test_a_series_that_is_sealed_and_swept_during_a_listing_is_listed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = lake.store(), lake.store()
    store.append_group([Page.of(BTC, bars({0: 1.0}), span(0, 1), fence=1, known_at=1)])
    names, done = store.storage.names, []

    def merged_meanwhile(folder: str) -> list[str]:
        found = names(folder)
        if not done:
            done.append(True)
            other.compact(BTC)
            other.sweep("binance")
        return found

    monkeypatch.setattr(store.storage, "names", merged_meanwhile)
    assert store.series("binance") == (BTC,)
