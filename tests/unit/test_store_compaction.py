"""The sealed file: what it holds, and that merging loses and changes nothing."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.clock import ManualClock
from collector.market.candles import PARTIAL
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store import compaction, part, segment, snapshot
from collector.store.page import Page
from collector.store.port import StorageFault
from collector.store.signature import DataHash, build_signature
from collector.version import __version__
from tests.support.bars import BTC, ETH, MINUTE, at, bars, flat, recorded, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.store.store import Store
    from tests.support.lakes import Lake

SEALED = "binance/BTC-USDT/1m.parquet"
VERSIONS = "binance/BTC-USDT/versions/1m.parquet"


@pytest.fixture
def store(lake: Lake) -> Store:
    return lake.store(clock=ManualClock(1_700_000_000_000))


@pytest.fixture
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, part, snapshot, compaction):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", 4)


def put(store: Store, prices: dict[int, float], covered: Interval, known_at: int) -> None:
    store.append_page(BTC, bars(prices), covered, fence=1, known_at=known_at)


def one_row(store: Store, slot: int, **how: Any) -> dict[str, Any]:
    row: dict[str, Any] = store.rows(BTC, at(slot), at(slot + 1), **how).to_pylist()[0]
    return row


def test_a_sealed_file_is_the_whole_calendar(store: Store, lake: Lake) -> None:
    store.append_page(BTC, bars({1: 10.0}), span(0, 3), fence=1, known_at=100)
    store.append_page(BTC, bars({4: 20.0}), span(4, 7), fence=1, known_at=101)
    done = store.compact(BTC)
    assert done is not None
    assert (done.rows, done.parts) == (6, 2)
    table = lake.table(SEALED)
    names = [
        "ts",
        "o",
        "h",
        "l",
        "c",
        "v",
        "t",
        "ver",
        "is_gap",
        "source",
        "gap_reason",
        "known_at",
        "seen_at",
    ]
    assert table.column_names == names
    assert table["ts"].to_pylist() == [at(slot) for slot in range(1, 7)]
    assert table["gap_reason"].to_pylist() == [
        None, "no_trade", "missing", None, "no_trade", "no_trade",
    ]  # fmt: skip
    assert table["c"].to_pylist() == [11, 11, 11, 21, 21, 21]
    assert table["v"].to_pylist() == [100, 0, 0, 200, 0, 0]
    assert table["is_gap"].to_pylist() == [False, True, True, False, True, True]
    assert table["ver"].to_pylist() == [1] * 6
    assert table["known_at"].to_pylist() == [100, None, None, 101, None, None]


def test_the_footer_is_enough_to_start_again_without_a_database(store: Store, lake: Lake) -> None:
    store.append_page(BTC, bars({1: 10.0}), span(0, 3), fence=1, known_at=100)
    store.append_page(BTC, bars({4: 20.0}), span(4, 7), fence=1, known_at=101)
    store.compact(BTC)
    footer = lake.metadata(SEALED).metadata
    assert footer[b"source"] == b"binance"
    assert footer[b"build_signature"].decode() == build_signature()
    assert footer[b"generated_at"] == b"2023-11-14T22:13:20+00:00"
    assert orjson.loads(footer[b"coverage"]) == [[at(0), at(3), 1], [at(4), at(7), 1]]
    assert orjson.loads(footer[b"cursor"]) == {
        "since_ms": at(0),
        "next_ms": at(3),
        "until_ms": at(7),
        "last_ts": at(4),
    }
    assert orjson.loads(footer[b"merged"]) == []


def test_the_data_hash_is_of_the_content_and_not_of_the_file(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(name: str, cuts: list[int]) -> str:
        store = lake.beside(name).store()
        for first, end in itertools.pairwise(cuts):
            batch = bars({slot: 10.0 + slot for slot in range(first, end) if slot != 5})
            store.append_page(BTC, batch, span(first, end), fence=1, known_at=first)
        done = store.compact(BTC)
        assert done is not None
        return done.footer.data_hash

    whole = build("a", [0, 12])
    monkeypatch.setattr(compaction, "ROWS_PER_GROUP", 4)
    assert build("b", [0, 4, 9, 12]) == whole
    assert build("c", [0, 4, 9, 11]) != whole
    table = lake.beside("b").table(SEALED)
    again = DataHash()
    again.update(table)
    assert again.hexdigest() == whole == slow_hash(table)


def slow_hash(table: Any) -> str:
    """The recipe of docs/store-format.md, word for word."""
    lines = ""
    for name in ["ts", "o", "h", "l", "c", "v", "t", "ver", "is_gap", "source", "gap_reason"]:
        column = table[name]
        if name in ("source", "gap_reason"):
            data = "".join(f"{value or ''}\n" for value in column.to_pylist()).encode()
        else:
            kind = {"ts": "<i8", "ver": "<i4", "is_gap": "u1"}.get(name, "<f8")
            values = [np.nan if value is None else value for value in column.to_pylist()]
            data = np.array(values, dtype=kind).tobytes()
        lines += f"{name}:{hashlib.sha256(data).hexdigest()}\n"
    return hashlib.sha256(lines.encode()).hexdigest()


def test_the_checksum_is_one_that_sha256sum_checks(
    store: Store, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    put(store, {0: 1.0}, span(0, 1), 1)
    store.compact(BTC)
    folder = tmp_path_factory.mktemp("copied")
    for name in ("1m.parquet", "1m.parquet.sha256"):
        (folder / name).write_bytes(lake.read(f"binance/BTC-USDT/{name}"))
    digest, name = (folder / "1m.parquet.sha256").read_text().split()
    assert name == "1m.parquet"
    assert digest == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    checked = ["sha256sum", "-c", "1m.parquet.sha256"]
    assert subprocess.run(checked, cwd=folder, capture_output=True, check=False).returncode == 0


def test_the_build_is_signed_with_version_and_commit() -> None:
    assert build_signature().startswith(f"collector/{__version__}+")


def test_parts_go_when_they_are_merged_and_merging_again_does_nothing(
    store: Store, lake: Lake
) -> None:
    put(store, {0: 1.0}, span(0, 1), 1)
    assert store.compact(BTC) is not None
    assert store.storage.names("binance/BTC-USDT/parts/1m") == []
    before = lake.read(SEALED)
    assert store.compact(BTC) is None
    assert lake.read(SEALED) == before


def test_any_columns_may_be_asked_for(store: Store) -> None:
    put(store, {0: 1.0, 2: 3.0}, span(0, 3), 9)
    for _ in range(2):
        for columns in (["ver"], ("c", "ts"), ["known_at", "o"]):
            table = store.rows(BTC, at(0), at(3), columns=columns)
            assert table.column_names == list(columns)
            assert len(table) == 3
        store.compact(BTC)


def test_a_late_bar_settles_a_gap_in_the_sealed_file(store: Store) -> None:
    store.append_page(BTC, bars({0: 1.0}), span(0, 2), fence=1, known_at=1)
    store.append_page(BTC, bars({4: 5.0}), span(4, 5), fence=1, known_at=1)
    store.compact(BTC)
    assert store.rows(BTC, at(0), at(9))["gap_reason"].to_pylist()[1:4] == [
        "no_trade", "missing", "missing",
    ]  # fmt: skip
    store.append_page(BTC, bars({2: 3.0}), span(2, 4), fence=1, known_at=2)
    for _ in range(2):
        rows = store.rows(BTC, at(0), at(9))
        assert rows["gap_reason"].to_pylist() == [None, "no_trade", None, "no_trade", None]
        assert rows["c"].to_pylist() == [2, 2, 4, 4, 6]
        # A range that opens inside the gap carries the close of the bar that was just found.
        assert one_row(store, 3)["c"] == 4
        store.compact(BTC)


def test_a_range_inside_a_gap_carries_the_close_of_a_bar_found_before_it(store: Store) -> None:
    store.append_page(BTC, bars({0: 1.0}), span(0, 1), fence=1, known_at=1)
    store.append_page(BTC, bars({6: 5.0}), span(6, 7), fence=1, known_at=1)
    store.compact(BTC)
    assert one_row(store, 4)["c"] == 2
    store.append_page(BTC, bars({2: 3.0}), span(2, 3), fence=1, known_at=2)
    assert one_row(store, 4)["c"] == 4


@pytest.mark.usefixtures("_short_windows")
def test_windows_do_not_show_in_the_rows(store: Store, lake: Lake) -> None:
    prices = {slot: float(slot + 1) for slot in range(40) if slot % 7 and not 12 < slot < 27}
    put(store, prices, span(0, 40), 1)
    store.compact(BTC)
    file = pq.ParquetFile(pa.BufferReader(lake.read(SEALED)))
    assert file.metadata.num_row_groups > 8
    table = file.read()
    assert (np.diff(table["ts"].to_numpy()) == MINUTE).all()
    for first in range(40):
        some = store.rows(BTC, at(first), at(first + 3))
        expected = table.select(some.column_names)
        ts = expected["ts"].to_numpy()
        assert some.equals(expected.filter((ts >= at(first)) & (ts < at(first + 3))))


def test_group_parts_stay_until_every_series_has_them(store: Store, lake: Lake) -> None:
    path = store.append_group(
        [Page.of(series, flat(0, 1), span(0, 1), fence=1, known_at=1) for series in (BTC, ETH)]
    )
    assert path is not None
    store.compact(BTC)
    assert store.sweep("binance") == ()
    assert store.compact(BTC) is None
    assert store.rows(ETH, at(0), at(1)).num_rows == 1
    store.compact(ETH)
    assert store.sweep("binance") == (path,)
    assert store.sweep("binance") == ()
    assert store.rows(BTC, at(0), at(1)).num_rows == store.rows(ETH, at(0), at(1)).num_rows == 1
    # The note that it was merged goes with the next compaction.
    put(store, {1: 1.0}, span(1, 2), 2)
    store.compact(BTC)
    assert lake.metadata(SEALED).metadata[b"merged"] == b"[]"


def test_partial_bars_keep_their_mark_and_their_prices(store: Store) -> None:
    """A resampled window with a gap in it is a bar and a gap at once."""
    five = Series.of("binance", "BTC/USDT", "5m")
    batch = flat(0, 1)
    batch.gap[0] = PARTIAL
    store.append_page(five, batch, span(0, 10), fence=1, known_at=1)
    for _ in range(2):
        rows = store.rows(five, at(0), at(10))
        assert rows["is_gap"].to_pylist() == [True, True]
        assert rows["gap_reason"].to_pylist() == ["partial", "no_trade"]
        assert rows["v"].to_pylist() == [1000.0, 0.0]
        store.compact(five)


@pytest.mark.parametrize("name", ["UNITTEST_BTC-1m", "XRP_ETH-1m"])
def test_real_bars_come_back_bit_for_bit(store: Store, name: str) -> None:
    real = recorded(name)
    whole = Interval(int(real.ts[0]), int(real.ts[-1]) + MINUTE)
    for start in range(0, len(real), 1000):
        some = real.take(slice(start, start + 1000))
        covered = Interval(int(some.ts[0]), int(some.ts[-1]) + MINUTE)
        store.append_page(BTC, some, covered, fence=1, known_at=start)
    for _ in range(2):
        table = store.rows(BTC, whole.from_ms, whole.to_ms)
        assert len(table) == (whole.to_ms - whole.from_ms) // MINUTE
        kept = table.filter(table["gap_reason"].is_null())
        for column, theirs in zip(
            ["ts", "o", "h", "l", "c", "v"], (real.ts, *real.values()), strict=False
        ):
            assert np.array_equal(kept[column].to_numpy(), theirs)
        store.compact(BTC)


def test_a_full_disk_in_the_middle_of_a_compaction_changes_nothing(
    lake: Lake, tmp_path: Path
) -> None:
    store = lake.store()
    put(store, {0: 1.0}, span(0, 1), 1)
    store.compact(BTC)
    put(store, {1: 1.0}, span(1, 2), 2)

    def full(point: StorageFault, _path: str) -> None:
        if point is StorageFault.MID_WRITE:
            raise OSError(28, os.strerror(28))

    with pytest.raises(Exception, match="No space left"):
        lake.store(full).compact(BTC)
    assert store.rows(BTC, at(0), at(2)).num_rows == 2
    assert not list(tmp_path.rglob("*.tmp"))  # A lake on disk lies there.
    store.compact(BTC)
    assert store.rows(BTC, at(0), at(2)).num_rows == 2
