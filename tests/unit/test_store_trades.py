"""Trades by the day: every one once, in order, with concurrent writers."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.market.trade import Trade
from collector.store.disk import LocalDisk
from collector.store.port import Corrupt, StorageFault
from collector.store.trade_day import FEW_PARTS, MANY_PARTS
from collector.store.trade_rows import ROWS_PER_BATCH, TRADE_SCHEMA
from collector.store.trades import (
    append_trades,
    read_trades,
    settle_trades,
    trade_batches,
    trade_days,
    trade_symbols,
)

if TYPE_CHECKING:
    from pathlib import Path

    from collector.store.port import Storage
    from tests.support.lakes import Lake

DAY = 86_400_000
START = 20_000 * DAY
DAY_FILE = "binance/BTC-USDT/trades/2024-10-04.parquet"
PARTS = "binance/BTC-USDT/trades/parts"


def trade(number: int, ts: int, price: float = 1.0) -> Trade:
    return Trade(str(number), ts, price, 2.0, "buy")


def append(disk: Storage, *trades: Trade, known_at: int = 1) -> int:
    return append_trades(disk, "binance", "BTC/USDT", trades, known_at=known_at)


def read(disk: Storage, from_ms: int = START, to_ms: int = START + 3 * DAY) -> list[Any]:
    return read_trades(disk, "binance", "BTC/USDT", from_ms, to_ms).to_pylist()


def test_each_day_has_its_own_file(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    assert append(disk, trade(1, START), trade(2, START + DAY - 1), trade(3, START + DAY)) == 3
    assert disk.names("binance/BTC-USDT/trades") == ["2024-10-04.parquet", "2024-10-05.parquet"]
    assert [row["id"] for row in read(disk)] == ["1", "2", "3"]
    assert [row["id"] for row in read(disk, START + 1, START + DAY)] == ["2"]
    assert read(disk, START + DAY, START) == []


def test_only_days_with_a_file_are_days(lake: Lake) -> None:
    disk = lake.storage()
    append(disk, trade(1, START), trade(2, START + 5 * DAY))
    for name in ("notes.txt", "2024-1-1.parquet", "20240101.parquet", "2024-02-30.parquet"):
        disk.write_atomic(f"binance/BTC-USDT/trades/{name}", b"not ours")
    disk.write_atomic("binance/ETH-USDT/1m.parquet", b"bars, no trades")
    disk.write_atomic("binance/not a symbol/trades/2024-10-04.parquet", b"not ours")
    assert [day.from_ms for day in trade_days(disk, "binance", "BTC/USDT")] == [
        START,
        START + 5 * DAY,
    ]
    assert trade_symbols(disk, "binance") == ("BTC/USDT",)
    assert trade_symbols(disk, "kraken") == ()
    assert [row["id"] for row in read(disk, 0, 2**52)] == ["1", "2"]


def test_batches_are_read_a_day_at_a_time(lake: Lake) -> None:
    disk = lake.storage()
    append(disk, trade(1, START), trade(2, START + DAY), trade(3, START + DAY + 1))
    disk.write_atomic("binance/BTC-USDT/trades/2024-10-06.parquet", b"not parquet")
    batches = trade_batches(disk, "binance", "BTC/USDT", START, None)
    assert [next(batches)["id"].to_pylist() for _ in range(2)] == [["1"], ["2", "3"]]
    with pytest.raises(Corrupt, match="2024-10-06"):
        next(batches)


def test_a_file_with_other_columns_is_damaged(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ["1"], "ts": [START]}), sink)
    disk.write_atomic(DAY_FILE, sink.getvalue())
    with pytest.raises(Corrupt, match="2024-10-04"):
        read(disk)


def test_a_trade_told_again_stays_as_it_was_first_told(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    append(disk, trade(1, START, 5.0), trade(1, START, 6.0))
    stamp = disk.stamp(DAY_FILE)
    assert append(disk, trade(1, START, 7.0), known_at=2) == 0
    assert disk.stamp(DAY_FILE) == stamp, "nothing was new, so nothing was written"
    assert append(disk, trade(1, START, 7.0), trade(2, START), known_at=3) == 1
    assert [(row["price"], row["known_at"]) for row in read(disk)] == [(5.0, 1), (1.0, 3)]


def test_order_does_not_depend_on_the_order_of_telling(tmp_path: Path) -> None:
    told = [trade(9, START), trade(10, START), trade(11, START), trade(2, START + 1)]
    one, other = LocalDisk(tmp_path / "one"), LocalDisk(tmp_path / "other")
    append(one, *told)
    for each in reversed(told):
        append(other, each)
    assert [row["id"] for row in read(one)] == ["9", "10", "11", "2"]
    assert read(other) == read(one)


def test_whoever_is_overtaken_loses_no_trade(tmp_path: Path) -> None:
    """Another writer replaces the day between our reading and our writing."""
    others = []

    def overtake(point: StorageFault, path: str) -> None:
        if point is StorageFault.BEFORE_FSYNC and path == DAY_FILE:
            others.append(100 + len(others))
            append(LocalDisk(tmp_path), trade(others[-1], START))
            settle_trades(LocalDisk(tmp_path), "binance", START + DAY)

    disk = LocalDisk(tmp_path, overtake)
    for number in range(3 * FEW_PARTS):
        assert append(disk, trade(number, START)) == 1
    assert len(others) > 1
    ids = map(str, [*range(3 * FEW_PARTS), *others])
    assert [row["id"] for row in read(LocalDisk(tmp_path))] == list(ids)


def test_one_more_trade_does_not_rewrite_the_day(tmp_path: Path) -> None:
    written = 0

    def count(point: StorageFault, path: str) -> None:
        nonlocal written
        if point is StorageFault.AFTER_WRITE:
            written += (tmp_path / path).stat().st_size

    disk = LocalDisk(tmp_path, count)
    append(disk, *(trade(n, START + n, price=n * 0.1) for n in range(50_000)))
    stamp, size, written = disk.stamp(DAY_FILE), (tmp_path / DAY_FILE).stat().st_size, 0
    for number in range(50_000, 50_020):
        assert append(disk, trade(number, START + number)) == 1
    assert disk.stamp(DAY_FILE) == stamp
    assert written < size / 2, "twenty small parts"
    assert [row["id"] for row in read(disk)] == list(map(str, range(50_020)))


def test_parts_are_merged_before_they_are_many(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    append(disk, *(trade(n, START + n) for n in range(20_000)))
    most = 0
    for number in range(20_000, 20_000 + MANY_PARTS + 10):
        append(disk, trade(number, START + number))
        most = max(most, len(disk.names(PARTS)))
    assert most == MANY_PARTS - 1
    assert len(read(disk)) == 20_000 + MANY_PARTS + 10


def test_a_late_trade_takes_its_place_across_batches(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    # Many of one millisecond, on both sides of where one row group ends and the next begins.
    last = ROWS_PER_BATCH + 50
    times = {n: START + min(n, ROWS_PER_BATCH - 5) for n in range(0, last, 1)}
    late = {3, ROWS_PER_BATCH - 2, ROWS_PER_BATCH, last - 1}
    append(disk, *(trade(n, ts) for n, ts in times.items() if n not in late))
    stamp = disk.stamp(DAY_FILE)
    assert append(disk, *(trade(n, times[n]) for n in (0, *late)), known_at=2) == len(late)
    assert disk.stamp(DAY_FILE) == stamp
    batches = trade_batches(disk, "binance", "BTC/USDT")
    assert [id_ for batch in batches for id_ in batch["id"].to_pylist()] == list(map(str, times))


def test_days_that_are_over_are_settled_into_their_files(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    for number in range(3):
        append(disk, trade(number, START), trade(number + 10, START + DAY))
    assert settle_trades(disk, "binance", START + DAY) == 2
    table = pq.read_table(tmp_path / DAY_FILE)
    assert table["id"].to_pylist() == ["0", "1", "2"]
    assert len(disk.names(PARTS)) == 2, "those of the day that goes on"
    assert [row["id"] for row in read(disk)] == ["0", "1", "2", "10", "11", "12"]


def test_a_crash_between_merge_and_delete_leaves_every_trade_once(tmp_path: Path) -> None:
    class Killed(Exception):
        pass

    def kill(point: StorageFault, _path: str) -> None:
        if point is StorageFault.BEFORE_DELETE:
            raise Killed

    disk = LocalDisk(tmp_path)
    append(disk, trade(1, START))
    append(disk, trade(2, START))
    with pytest.raises(Killed):
        settle_trades(LocalDisk(tmp_path, kill), "binance", START + DAY)
    assert [row["id"] for row in read(disk)] == ["1", "2"]
    settle_trades(disk, "binance", START + DAY)
    assert [row["id"] for row in read(disk)] == ["1", "2"]
    assert disk.names(PARTS) == []


def test_a_reader_whose_part_is_merged_looks_again(tmp_path: Path) -> None:
    append(LocalDisk(tmp_path), trade(1, START))
    append(LocalDisk(tmp_path), trade(2, START))

    class Slow(LocalDisk):
        def read(self, path: str) -> bytes:
            settle_trades(LocalDisk(tmp_path), "binance", START + DAY)
            return super().read(path)

    assert [row["id"] for row in read(Slow(tmp_path))] == ["1", "2"]


def test_a_damaged_day_blocks_only_itself(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    append(disk, trade(1, START), trade(2, START + DAY), trade(3, START + 2 * DAY))
    damaged = "binance/BTC-USDT/trades/2024-10-05.parquet"
    disk.write_atomic(damaged, b"not parquet")
    for number in range(FEW_PARTS + 1):
        fresh = [trade(10 + number, START + day * DAY) for day in range(3)]
        assert append(disk, *fresh) == 3, "nothing is lost, and nobody is kept from writing"
    settle_trades(disk, "binance", START + 3 * DAY)
    assert disk.read(damaged) == b"not parquet", "what can be mended is not overwritten"
    with pytest.raises(Corrupt, match="2024-10-05"):
        read(disk)
    others = trade_batches(disk, "binance", "BTC/USDT", damaged="skip")
    assert sum(map(len, others)) == 2 * (FEW_PARTS + 2)


def test_a_damaged_part_is_set_aside_when_the_day_is_merged(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    append(disk, trade(1, START))
    append(disk, trade(2, START))
    [part] = disk.names(PARTS)
    disk.write_atomic(f"{PARTS}/{part}", b"not parquet")
    with pytest.raises(Corrupt, match=part):
        read(disk)
    settle_trades(disk, "binance", START + DAY)
    assert disk.names(PARTS) == [f"{part}.corrupt"]
    assert [row["id"] for row in read(disk)] == ["1"]


def test_no_trades_read_as_an_empty_table(tmp_path: Path) -> None:
    table = read_trades(LocalDisk(tmp_path), "binance", "BTC/USDT", START, START + DAY)
    assert table.schema.equals(TRADE_SCHEMA)
    assert len(table) == 0
