"""Compactions and readers that meet in the middle of their work."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from collector.store.port import Fault, Swapped
from tests.store_bars import BTC, at, bars, span

if TYPE_CHECKING:
    from collector.market.interval import Interval
    from collector.store.store import Store
    from tests.lakes import Lake

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

    def meanwhile(point: Fault, path: str) -> None:
        if point is Fault.BEFORE_FSYNC and path == SEALED and not done:
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
    digest = lake.read(f"{SEALED}.sha256").decode().split()[0]
    assert digest == hashlib.sha256(lake.read(SEALED)).hexdigest()


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
