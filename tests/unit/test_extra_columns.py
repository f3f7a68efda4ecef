"""Further columns of a bar, through everything that a bar passes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.clock import ManualClock
from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.extra import extra_columns, rule_of
from collector.market.interval import Interval
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.pipeline.fold import Sightings, fold
from collector.pipeline.resample import resample
from collector.reader import CandleReader
from collector.store import footer, layout
from collector.store.copies import Copies
from collector.store.page import Page
from collector.store.repair import repair
from collector.store.signature import DataHash
from collector.store.store import Store
from collector.store.verification import check_content
from tests.support.file_damage import flip, footer_span, page_place

if TYPE_CHECKING:
    from pathlib import Path

MINUTE = 60_000
T0 = 1_772_582_400_000  # 2026-03-04 00:00 UTC, a Wednesday
EUR = Series.of("fxcm", "EUR/USD", "1m")
USD = Series.of("fxcm", "USD/JPY", "1m")
NAMES = ("ask_o", "ask_h", "ask_l", "ask_c")


def bars(first: int, count: int, ask: float = 1.0) -> CandleBatch:
    rows = [(T0 + at * MINUTE, 10.0, 12.0, 9.0, 11.0, 1.0) for at in range(first, first + count)]
    places = np.arange(first, first + count, dtype=np.float64)
    asks = {name: places + ask + at / 10 for at, name in enumerate(NAMES)}
    return CandleBatch.of(rows).with_extra(asks)


def span(first: int, count: int) -> Interval:
    return Interval(T0 + first * MINUTE, T0 + (first + count) * MINUTE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    frames = (Timeframe.parse("5m"), Timeframe.parse("1h"))
    clock = ManualClock(wall_ms=T0 + 10**7)
    return Store(tmp_path, copies=Copies(frames, tail_days=1), clock=clock)


def read(store: Store, timeframe: str = "1m", **how: object) -> dict[str, list[float]]:
    reader = CandleReader("EUR/USD", timeframe, "fxcm", root=store)
    table = reader.arrow(**how)  # type: ignore[arg-type]
    assert table.schema.names == [*CANDLE_SCHEMA.names, *NAMES]
    found: dict[str, list[float]] = table.to_pydict()
    return found


def test_the_end_of_a_name_says_what_becomes_of_it() -> None:
    assert [rule_of(name) for name in NAMES] == ["first", "max", "min", "last"]
    assert [rule_of(name) for name in ("trades", "o", "spread_x")] == ["sum"] * 3
    assert extra_columns("binance") == ()


def test_columns_of_another_exchange_are_refused() -> None:
    with pytest.raises(ValueError, match="no such columns"):
        Page.of(Series.of("binance", "BTC/USDT", "1m"), bars(0, 2), span(0, 2), fence=1, known_at=1)
    with pytest.raises(ValueError, match="not as long"):
        bars(0, 2).with_extra({"ask_o": np.zeros(3)})


@pytest.mark.parametrize("state", ["page", "group", "gathered", "compacted", "resampled", "both"])
def test_they_come_out_as_they_went_in(store: Store, state: str) -> None:
    if state in ("group", "gathered"):
        for first in (0, 30):
            some = {"fence": 1, "known_at": 1 + first}
            store.append_group(
                [
                    Page.of(EUR, bars(first, 30), span(first, 30), **some),
                    Page.of(USD, bars(first, 30, 5.0), span(first, 30), **some),
                ]
            )
        if state == "gathered":
            assert store.gather("fxcm") == 2
    else:
        store.append_page(EUR, bars(0, 30), span(0, 30), fence=1, known_at=1)
        if state == "both":
            store.compact(EUR)
        store.append_page(EUR, bars(30, 30), span(30, 30), fence=1, known_at=2)
        if state in ("compacted", "resampled"):
            store.compact(EUR)
    found = read(store)
    expected = bars(0, 60)
    assert found["ts"] == expected.ts.tolist()
    for name in NAMES:
        assert found[name] == expected.extra[name].tolist()
    hour = read(store, "1h")
    assert [hour[name] for name in NAMES] == [[1.0], [60.1], [1.2], [60.3]]


def test_a_change_in_one_alone_is_a_new_version(store: Store) -> None:
    store.append_page(EUR, bars(0, 3, 1.0), span(0, 3), fence=1, known_at=T0 + 100)
    store.compact(EUR)
    store.append_page(EUR, bars(1, 1, 2.0), span(1, 1), fence=1, known_at=T0 + 200)
    for _ in range(2):
        found = read(store)
        assert found["ver"] == [1, 2, 1]
        assert found["ask_o"] == [1.0, 3.0, 3.0]
        assert read(store, as_of=T0 + 150)["ask_o"] == [1.0, 2.0, 3.0]
        store.compact(EUR)
    versions = pq.read_table(store.storage.open(layout.versions_path(EUR)))
    assert versions["ask_o"].to_pylist() == [2.0]


def test_the_order_of_sightings_decides_nothing() -> None:
    one, other = (Sightings.of(bars(0, 2, ask), 5, "x") for ask in (1.0, 2.0))
    forth = fold(Sightings.concat([one, other])).current.rows.batch
    back = fold(Sightings.concat([other, one])).current.rows.batch
    assert forth.extra["ask_o"].tolist() == back.extra["ask_o"].tolist() == [2.0, 3.0]


def test_fillers_have_none_and_lend_none(store: Store) -> None:
    batch = bars(0, 10)
    kept = np.ones(10, dtype=np.bool_)
    kept[[0, 4, 7]] = False
    first = bars(-1, 1)
    whole = CandleBatch.concat([first, batch.take(kept)])
    store.append_page(EUR, whole, span(-1, 11), fence=1, known_at=1)
    for _ in range(2):
        found = read(store, start=T0, end=T0 + 10 * MINUTE)
        assert [found["ask_o"][at] for at in (0, 4, 7)] == [None] * 3
        fives = read(store, "5m", start=T0, end=T0 + 10 * MINUTE)
        assert fives["ask_o"] == [2.0, 6.0]
        assert fives["ask_c"] == [pytest.approx(4.3), pytest.approx(10.3)]
        store.compact(EUR)


def test_always_open_bars_are_resampled_by_the_same_rules() -> None:
    minutes, fives = Timeframe.parse("1m"), Timeframe.parse("5m")
    batch = bars(0, 10).with_extra({"ask_h": np.array([1, 5, np.nan, 2, 3, *[np.nan] * 5])})
    made = resample(batch, minutes, fives)
    assert made.extra["ask_h"][0] == 5.0
    assert np.isnan(made.extra["ask_h"][1])


def test_a_damaged_sealed_file_is_repaired_with_them(store: Store) -> None:
    store.append_page(EUR, bars(0, 60), span(0, 60), fence=1, known_at=1)
    store.compact(EUR)
    path = layout.sealed_path(EUR)
    data = store.storage.read(path)
    store.storage.write_atomic(path, flip(data, page_place(data)))
    assert repair(store, "fxcm", "EUR/USD")
    assert read(store)["ask_c"] == bars(0, 60).extra["ask_c"].tolist()


def test_the_hash_covers_them_and_is_what_it_was_without_them(store: Store) -> None:
    plain, same = DataHash(), DataHash(())
    other = DataHash(["ask_o"])
    table = bars(0, 3).to_arrow("x", extra=NAMES)
    for each in (plain, same, other):
        each.update(table)
    assert plain.hexdigest() == same.hexdigest() != other.hexdigest()
    store.append_page(EUR, bars(0, 60), span(0, 60), fence=1, known_at=1)
    store.compact(EUR)
    with store.reading(EUR) as reading:
        sealed = reading._seen[EUR].sealed
        assert sealed is not None
        check_content(sealed.file)


_COLUMNS = {
    "ts": pa.int64(),
    "o": pa.float64(),
    "h": pa.float64(),
    "l": pa.float64(),
    "c": pa.float64(),
    "v": pa.float64(),
    "t": pa.float64(),
    "ver": pa.int32(),
    "is_gap": pa.bool_(),
    "source": pa.string(),
    "gap_reason": pa.string(),
    "known_at": pa.int64(),
    "seen_at": pa.int64(),
}
_MAY_BE_NULL = {"t", "gap_reason", "known_at", "seen_at"}
_PART = {"compression": "lz4"}
_SEALED = {"compression": "zstd", "compression_level": 7}


def test_files_of_an_exchange_without_any_have_the_bytes_they_always_had(store: Store) -> None:
    """Against a writer that spells the format out and knows nothing of further columns."""
    btc = Series.of("binance", "BTC/USDT", "1m")
    batch = CandleBatch.of([(T0 + at * MINUTE, 1.0, 2.0, 0.5, 1.5, 3.0) for at in range(120)])
    part = store.append_page(btc, batch.take(slice(0, 60)), span(0, 60), fence=1, known_at=1)
    assert part is not None
    found = {part: store.storage.read(part)}
    store.append_page(btc, batch.take(slice(70, 120)), span(60, 60), fence=1, known_at=2)
    store.compact(btc)
    hours = Series.of("binance", "BTC/USDT", "1h")
    for path in (layout.sealed_path(btc), layout.sealed_path(hours)):
        found[path] = store.storage.read(path)
    for path, data in found.items():
        spelt = _spelt_out(data, _PART if path == part else _SEALED)
        # The order of the footer's entries is the only thing that may differ.
        assert spelt[: footer_span(spelt).start] == data[: footer_span(data).start], path
        assert len(spelt) == len(data)
        assert _entries(spelt).keys() == _entries(data).keys()
        assert pq.read_schema(pa.BufferReader(spelt)).equals(pq.read_schema(pa.BufferReader(data)))


def _entries(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = pq.read_metadata(pa.BufferReader(data)).metadata
    return found


def _spelt_out(data: bytes, compression: dict[str, Any]) -> bytes:
    file = pq.ParquetFile(pa.BufferReader(data))
    schema = pa.schema([pa.field(n, k, n in _MAY_BE_NULL) for n, k in _COLUMNS.items()])
    metadata = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    del metadata["ARROW:schema"], metadata[footer.DIGEST]
    sink = io.BytesIO()
    with footer.writing(
        sink,
        schema,
        **compression,
        use_dictionary=["symbol", "tf", "ver", "source", "gap_reason"],
        column_encoding={
            **dict.fromkeys(("ts", "known_at", "seen_at"), "DELTA_BINARY_PACKED"),
            **dict.fromkeys(("v", "t"), "BYTE_STREAM_SPLIT"),
        },
        write_statistics=["symbol", "tf", "ts", "known_at"],
    ) as out:
        for group in range(file.num_row_groups):
            out.write_table(file.read_row_group(group).cast(schema))
        footer.close(out, sink, metadata)
    return sink.getvalue()
