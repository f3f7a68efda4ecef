"""Trades by the day: every one once, in order, whoever else writes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.market.trade import Trade
from collector.store.disk import LocalDisk
from collector.store.port import Corrupt, Fault
from collector.store.trades import (
    TRADE_SCHEMA,
    append_trades,
    read_trades,
    trade_batches,
    trade_days,
    trade_symbols,
)

if TYPE_CHECKING:
    from pathlib import Path

    from collector.store.port import Storage
    from tests.lakes import Lake

DAY = 86_400_000
START = 20_000 * DAY
DAY_FILE = "binance/BTC-USDT/trades/2024-10-04.parquet"


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
    overtakes = [2, 3]

    def overtake(point: Fault, _path: str) -> None:
        if point is Fault.BEFORE_FSYNC and overtakes:
            append(LocalDisk(tmp_path), trade(overtakes.pop(), START))

    assert append(LocalDisk(tmp_path, overtake), trade(1, START)) == 1
    assert [row["id"] for row in read(LocalDisk(tmp_path))] == ["1", "2", "3"]


def test_a_damaged_day_is_told_and_not_overwritten(tmp_path: Path) -> None:
    disk = LocalDisk(tmp_path)
    disk.write_atomic(DAY_FILE, b"not parquet")
    with pytest.raises(Corrupt, match="2024-10-04"):
        append(disk, trade(1, START))
    assert disk.read(DAY_FILE) == b"not parquet"


def test_no_trades_read_as_an_empty_table(tmp_path: Path) -> None:
    table = read_trades(LocalDisk(tmp_path), "binance", "BTC/USDT", START, START + DAY)
    assert table.schema.equals(TRADE_SCHEMA)
    assert len(table) == 0
