"""A lake is copied while its files move on: everything durable at the beginning is in the copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.history.writer import HistoryWriter
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.disk import LocalDisk
from collector.store.lake_copy import copy_lake, files_below
from collector.store.page import Page
from collector.store.port import Corrupt
from collector.store.store import Store
from tests.support.history_trades import PAIR, added, read, sale

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SERIES = Series.of("binance", "BTC/USDT", "1m")
OTHER = Series.of("binance", "ETH/USDT", "1m")
MINUTE = 60_000
BARS = 10


class Disturbed(LocalDisk):
    """A disk on which something happens before each of the first files is opened for copying."""

    def __init__(self, root: Path, *events: Callable[[], object]) -> None:
        super().__init__(root)
        self._events = list(events)

    def open(self, path: str) -> Any:
        if self._events:
            self._events.pop(0)()
        return super().open(path)


def bars(first: int, count: int, close: float = 1.0) -> CandleBatch:
    return CandleBatch.of(
        [(n * MINUTE, close, close, close, close, 1.0) for n in range(first, first + count)]
    )


def page(series: Series, first: int, count: int, known_at: int, close: float = 1.0) -> Page:
    covered = Interval(first * MINUTE, (first + count) * MINUTE)
    return Page.of(series, bars(first, count, close), covered, fence=1, known_at=known_at)


def append(store: Store, first: int, count: int, known_at: int, close: float = 1.0) -> None:
    covered = Interval(first * MINUTE, (first + count) * MINUTE)
    batch = bars(first, count, close)
    store.append_page(SERIES, batch, covered, fence=1, known_at=known_at)


def values(root: Path, series: Series = SERIES, as_of: int | None = None) -> list[float]:
    table = Store(root).rows(series, 0, BARS * MINUTE, as_of=as_of)
    assert not any(table.column("is_gap").to_pylist())
    found: list[float] = table.column("c").to_pylist()
    return found


def copied(disk: LocalDisk, to: Path) -> Path:
    copy_lake(disk, LocalDisk(to), "lake/")
    return to / "lake"


def test_parts_that_are_compacted_meanwhile_are_in_the_sealed_file(tmp_path: Path) -> None:
    source = Store(tmp_path / "a")
    for first in range(BARS):
        append(source, first, 1, first + 1)
    disk = Disturbed(tmp_path / "a", lambda: source.compact(SERIES))
    assert values(copied(disk, tmp_path / "b")) == [1.0] * BARS


def test_parts_that_are_gathered_meanwhile_are_in_the_new_part(tmp_path: Path) -> None:
    clock = ManualClock()
    source = Store(tmp_path / "a", clock=clock)
    for first in range(BARS):
        source.append_group([page(each, first, 1, first + 1) for each in (SERIES, OTHER)])

    def gathered() -> None:
        assert source.gather("binance")
        clock.advance(600)
        source.gather("binance")
        assert len(LocalDisk(tmp_path / "a").names("binance/parts")) == 1

    disk = Disturbed(tmp_path / "a", gathered)
    assert values(copied(disk, tmp_path / "b"), OTHER) == [1.0] * BARS


def test_a_version_that_is_replaced_meanwhile_is_kept(tmp_path: Path) -> None:
    source = Store(tmp_path / "a")
    append(source, 0, BARS, 1, close=1.0)
    source.compact(SERIES)
    append(source, 0, BARS, 2, close=2.0)
    for wait in range(1, 4):
        quiet: list[Callable[[], object]] = [lambda: None] * wait
        disk = Disturbed(tmp_path / "a", *quiet, lambda: source.compact(SERIES))
        lake = copied(disk, tmp_path / f"b{wait}")
        assert values(lake) == [2.0] * BARS
        assert values(lake, as_of=1) == [1.0] * BARS


def test_a_checksum_fits_its_file_unless_the_file_is_damaged(tmp_path: Path) -> None:
    source = Store(tmp_path / "a")
    append(source, 0, BARS - 1, 1)
    source.compact(SERIES)
    append(source, BARS - 1, 1, 2)
    disk = Disturbed(tmp_path / "a", lambda: None, lambda: source.compact(SERIES))
    lake = copied(disk, tmp_path / "b")
    Store(lake).compact(SERIES)
    sealed = tmp_path / "a/binance/BTC-USDT/1m.parquet"
    data = bytearray(sealed.read_bytes())
    data[len(data) // 3] ^= 1
    sealed.write_bytes(data)
    damaged = copied(LocalDisk(tmp_path / "a"), tmp_path / "c")
    with pytest.raises(Corrupt):
        Store(damaged).compact(SERIES)


def test_the_ledger_of_a_network_is_enough(tmp_path: Path) -> None:
    writer = HistoryWriter(LocalDisk(tmp_path / "a"), "net")
    events = [added(str(n), n, sale(n + 1)) for n in range(5)]
    writer.apply(list(enumerate(events, start=1)))
    writer.save()
    lake = copied(LocalDisk(tmp_path / "a"), tmp_path / "b")
    assert not [path for path in files_below(LocalDisk(lake)) if "/buckets/" in path]
    again = HistoryWriter(LocalDisk(lake), "net")
    assert again.applied_through == 5
    assert read(again.history, PAIR) == read(writer.history, PAIR)
