"""A disk that is really full, in the middle of a write and of a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.port import Unavailable
from collector.store.store import Store
from tests.acceptance.full_disk import small_disk
from tests.support.bars import BTC, MINUTE, T0

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = 1_000
COPIES = Copies(DEFAULT_TIMEFRAMES, tail_days=14)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Four megabytes."""
    place = tmp_path / "disk"
    with small_disk(place, megabytes=4) as mounted:
        if not mounted:
            pytest.skip("a small disk takes root to mount: a full disk was only simulated")
        yield place


def page(number: int) -> CandleBatch:
    noise = np.random.default_rng(number)
    price = 100 + noise.random(PAGE)
    ts = T0 + (number * PAGE + np.arange(PAGE)) * MINUTE
    columns = [ts, price, price + 1, price - 1, price, noise.random(PAGE), noise.random(PAGE)]
    return CandleBatch.of_columns(np.column_stack(columns))


def put(store: Store, number: int) -> None:
    start = T0 + number * PAGE * MINUTE
    covered = Interval(start, start + PAGE * MINUTE)
    store.append_page(BTC, page(number), covered, fence=1, known_at=number)


def check(store: Store, pages: int) -> None:
    """Exactly what was acknowledged is there."""
    table = store.rows(BTC, 0, 2**52)
    expected = CandleBatch.concat([page(number) for number in range(pages)])
    assert table["ts"].to_numpy().tolist() == expected.ts.tolist()
    assert np.array_equal(table["c"].to_numpy(), expected.c)
    assert not any(table["is_gap"].to_pylist())


def until_full(store: Store) -> int:
    """The number of pages that were acknowledged before there was no room for another."""
    for number in range(1_000):
        try:
            put(store, number)
        except Unavailable:
            return number
    raise AssertionError("a disk of four megabytes never got full")


def test_nothing_acknowledged_is_lost_and_work_goes_on_when_there_is_room(disk: Path) -> None:
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(3_200_000))
    store = Store(disk, copies=COPIES)
    durable = until_full(store)
    assert durable > 3
    check(store, durable)

    with pytest.raises(Unavailable, match="No space left"):
        store.compact(BTC)
    check(Store(disk), durable)

    ballast.unlink()
    store.compact(BTC)
    put(store, durable)
    check(Store(disk), durable + 1)
    leftovers = [path for path in disk.rglob("*") if path.name.endswith(".tmp")]
    assert leftovers == []
