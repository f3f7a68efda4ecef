"""Longer timeframes and the tail: written beside the minutes, never lacking what those have."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from collector.clock import ManualClock
from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.pipeline.ladder import Graded, Ladder
from collector.reader import CandleReader
from collector.store import derived
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.disk import LocalDisk
from collector.store.port import Corrupt, StorageFault
from collector.store.shelf import Shelf
from collector.store.snapshot import SeriesSnapshot
from collector.store.store import Store
from tests.support.bars import BTC, MINUTE, at, bars, flat, recorded, span
from tests.support.file_damage import flip, footer_span, page_place

if TYPE_CHECKING:
    from pathlib import Path

FIVE = Series.of("binance", "BTC/USDT", "5m")
NAMES = ("5m", "15m", "1h")
COPIES = Copies(DEFAULT_TIMEFRAMES, tail_days=1)
DAY = 1440


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path, clock=ManualClock(1_700_000_000_000), copies=COPIES)


def wavy(first: int, count: int) -> dict[int, float]:
    return {slot: 100.0 + slot % 17 for slot in range(first, first + count)}


def put(store: Store, prices: dict[int, float], first: int, end: int, known_at: int = 1) -> None:
    store.append_page(BTC, bars(prices), span(first, end), fence=1, known_at=known_at)


def read(store: Store, timeframe: str) -> pa.Table:
    return CandleReader("BTC/USDT", timeframe, "binance", store).arrow()


def made_of_minutes(store: Store, timeframe: str) -> pa.Table:
    """The same, without a look into any file of longer bars."""
    minutes = store.rows(BTC, 0, 2**52)
    frame = Timeframe.parse(timeframe)
    graded = Graded(CandleBatch.from_arrow(minutes), minutes["ver"].to_numpy())
    made = Ladder(BTC.timeframe, [frame]).climb(graded)[frame]
    return made.batch.to_arrow("binance", made.ver)


def in_step_until(store: Store, longer: Series) -> int:
    shelf = Shelf(store.storage)
    with (
        SeriesSnapshot(store.storage, shelf, longer) as copy,
        SeriesSnapshot(store.storage, shelf, BTC) as minutes,
    ):
        return derived.agrees_until(copy, minutes)


@pytest.mark.parametrize("timeframe", NAMES)
def test_a_compaction_writes_the_longer_timeframes(
    store: Store, tmp_path: Path, timeframe: str
) -> None:
    prices = wavy(3, 2 * DAY)
    for hole in (150, 151, 700):
        del prices[hole]
    put(store, prices, 3, 3 + 2 * DAY)
    store.compact(BTC)
    file = pq.read_table(tmp_path / f"binance/BTC-USDT/{timeframe}.parquet")
    expected = made_of_minutes(store, timeframe)
    assert file.select(expected.column_names).equals(expected)
    assert len(file) == 2 * DAY * MINUTE // Timeframe.parse(timeframe).ms - 1
    assert pc.sum(file["is_gap"]).as_py() == 2
    metadata = pq.read_metadata(tmp_path / f"binance/BTC-USDT/{timeframe}.parquet").metadata
    assert metadata[b"derived_from"] == b"1m"
    minutes = pq.read_metadata(tmp_path / "binance/BTC-USDT/1m.parquet").metadata
    assert metadata[b"made_of"] == b"2:" + minutes[b"data_hash"]
    checked = subprocess.run(
        ["sha256sum", "-c", f"{timeframe}.parquet.sha256"],
        cwd=tmp_path / "binance/BTC-USDT",
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0


@pytest.mark.parametrize("timeframe", NAMES)
def test_a_read_is_never_behind_its_minutes(store: Store, timeframe: str) -> None:
    put(store, wavy(0, DAY), 0, DAY)
    store.compact(BTC)
    put(store, wavy(DAY, 90), DAY, DAY + 90, known_at=2)
    put(store, {700: 5000.0}, 700, 701, known_at=3)
    table = read(store, timeframe)
    assert table.equals(made_of_minutes(store, timeframe))
    assert pc.max(table["h"]).as_py() == 5002.0
    assert pc.max(table["ver"]).as_py() == 2
    store.compact(BTC)
    assert read(store, timeframe).equals(table)


def test_a_crash_before_the_longer_files_are_in_place_is_healed(tmp_path: Path) -> None:
    class Cut(BaseException):
        pass

    def cut(point: StorageFault, path: str) -> None:
        if (
            point is StorageFault.BEFORE_RENAME
            and path.endswith("5m.parquet")
            and "15m" not in path
        ):
            raise Cut

    whole = Store(tmp_path, copies=COPIES)
    put(whole, wavy(0, 300), 0, 300)
    whole.compact(BTC)
    put(whole, wavy(300, 300), 300, 600, known_at=2)
    with pytest.raises(Cut):
        Store(LocalDisk(tmp_path, faults=cut), copies=COPIES).compact(BTC)
    again = Store(tmp_path, copies=COPIES)
    assert in_step_until(again, FIVE) == 0
    assert len(read(again, "5m")) == 120
    again.compact(BTC)
    assert in_step_until(again, FIVE) == at(600)
    assert read(again, "5m").equals(made_of_minutes(again, "5m"))


def test_a_timeframe_that_is_collected_is_left_alone(store: Store) -> None:
    told = flat(0, 1, price=7.0)
    store.append_page(FIVE, told, span(0, 5), fence=1, known_at=1)
    put(store, wavy(0, 60), 0, 60)
    store.compact(BTC)
    assert store.rows(FIVE, at(0), at(60))["o"].to_pylist() == [7.0]
    store.compact(FIVE)
    store.compact(BTC)
    assert store.rows(FIVE, at(0), at(60))["o"].to_pylist() == [7.0]


def test_bars_that_are_collected_win_slot_by_slot(store: Store) -> None:
    put(store, wavy(0, 60), 0, 60)
    store.compact(BTC)
    made = read(store, "5m")["o"].to_pylist()
    store.append_page(FIVE, flat(10, 1, price=7.0), span(10, 15), fence=1, known_at=2)
    for _ in range(2):
        assert read(store, "5m")["o"].to_pylist() == [*made[:2], 7.0, *made[3:]]
        store.compact(FIVE)


def test_a_file_for_tools_has_collected_and_made_bars(store: Store, tmp_path: Path) -> None:
    """One bar is collected beside minutes: its compaction must not take the rest from tools."""
    put(store, wavy(0, 60), 0, 60)
    store.compact(BTC)
    made = pq.read_table(tmp_path / "binance/BTC-USDT/5m.parquet")["o"].to_pylist()
    store.append_page(FIVE, flat(10, 1, price=7.0), span(10, 15), fence=1, known_at=2)
    store.compact(FIVE)
    whole = tmp_path / "binance/BTC-USDT/whole/5m.parquet"
    assert pq.read_table(whole)["o"].to_pylist() == [*made[:2], 7.0, *made[3:]]
    put(store, wavy(60, 60), 60, 120)
    store.compact(BTC)
    after = pq.read_table(whole)
    assert after.schema.remove_metadata().equals(CANDLE_SCHEMA)
    assert after.equals(CandleReader("BTC/USDT", "5m", "binance", store).arrow())
    assert len(after) == 24
    assert not whole.with_name("15m.parquet").exists(), "15m.parquet itself has all of them"


def test_the_tail_holds_the_last_days(store: Store, tmp_path: Path) -> None:
    put(store, wavy(0, 3 * DAY), 0, 3 * DAY)
    store.compact(BTC)
    path = tmp_path / "binance/BTC-USDT/tail/1m.tail.parquet"
    assert pq.read_table(path)["ts"].to_pylist() == [at(slot) for slot in range(2 * DAY, 3 * DAY)]
    put(store, wavy(3 * DAY, 10), 3 * DAY, 3 * DAY + 10, known_at=2)
    assert store.refresh_tail(BTC)
    table = pq.read_table(path)
    assert table.equals(
        store.rows(BTC, at(2 * DAY + 10), at(3 * DAY + 10), columns=table.column_names)
    )
    assert len(table) == DAY


damages = {
    "cut to zero": lambda data: b"",
    "a bit of the footer": lambda data: flip(data, footer_span(data).start + 40),
    "a bit of a page": lambda data: flip(data, page_place(data)),
}


@pytest.mark.parametrize("damage", damages)
def test_a_damaged_copy_costs_nothing_and_is_made_again(tmp_path: Path, damage: str) -> None:
    store = Store(tmp_path, copies=COPIES)
    put(store, wavy(0, DAY), 0, DAY)
    store.compact(BTC)
    file = tmp_path / "binance/BTC-USDT/5m.parquet"
    sound = file.read_bytes()
    file.write_bytes(damages[damage](sound))
    again = Store(tmp_path, copies=COPIES)
    assert read(again, "5m").equals(made_of_minutes(again, "5m"))
    assert again.series("binance") == (
        BTC,
        FIVE,
        *(BTC.of("binance", BTC.symbol, tf) for tf in NAMES[1:]),
    )
    put(again, wavy(DAY, DAY), DAY, 2 * DAY, known_at=2)
    again.compact(BTC)
    assert in_step_until(again, FIVE) == at(2 * DAY)
    assert read(again, "5m").equals(made_of_minutes(again, "5m"))


def test_a_damaged_file_of_a_collected_timeframe_is_no_copy(store: Store, tmp_path: Path) -> None:
    store.append_page(FIVE, flat(0, 1, price=7.0), span(0, 5), fence=1, known_at=1)
    store.compact(FIVE)
    put(store, wavy(0, 60), 0, 60)
    file = tmp_path / "binance/BTC-USDT/5m.parquet"
    file.write_bytes(b"")
    again = Store(tmp_path, copies=COPIES)
    again.compact(BTC)
    assert file.read_bytes() == b"", "its bars are nowhere else"
    with pytest.raises(Corrupt):
        read(again, "5m")


def test_damage_in_a_copy_that_nobody_reads_is_found_and_made_good(
    store: Store, tmp_path: Path
) -> None:
    put(store, wavy(0, DAY), 0, DAY)
    store.compact(BTC)
    file = tmp_path / "binance/BTC-USDT/5m.parquet"
    whole = file.read_bytes()
    file.write_bytes(flip(whole, page_place(whole)))
    again = Store(tmp_path, clock=ManualClock(1_700_000_000_000), copies=COPIES)
    assert again.compact(BTC) is None
    assert file.read_bytes() == whole


def test_damage_in_a_sealed_file_that_nobody_reads_is_found(store: Store, tmp_path: Path) -> None:
    put(store, wavy(0, DAY), 0, DAY)
    store.compact(BTC)
    file = tmp_path / "binance/BTC-USDT/1m.parquet"
    file.write_bytes(flip(whole := file.read_bytes(), page_place(whole)))
    with pytest.raises(Corrupt):
        Store(tmp_path, copies=COPIES).compact(BTC)


def test_an_empty_series_has_no_tail(store: Store, tmp_path: Path) -> None:
    assert not store.refresh_tail(BTC)
    put(store, {}, 0, 10)
    assert not store.refresh_tail(BTC)
    assert not (tmp_path / "binance/BTC-USDT/tail").exists()


def test_real_bars_in_pieces(store: Store) -> None:
    real = recorded("XRP_ETH-1m")
    half = len(real) // 2
    ends = (int(real.ts[0]), int(real.ts[half]), int(real.ts[-1]) + MINUTE)
    for number, piece in enumerate((slice(0, half), slice(half, None))):
        covered = Interval(ends[number], ends[number + 1])
        store.append_page(BTC, real.take(piece), covered, fence=1, known_at=number)
        store.compact(BTC)
    for timeframe in NAMES:
        assert read(store, timeframe).equals(made_of_minutes(store, timeframe))
