"""Ranges in, candles out."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars
import pytest

from collector.market.candles import CANDLE_SCHEMA
from collector.market.series import Series
from collector.reader import DataReader, default_root, epoch_ms
from collector.store import compaction, part, segment, snapshot
from collector.store.page import Page
from collector.store.store import Store
from tests.store_bars import BTC, MINUTE, T0, at, bars, flat, span

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def reader(root: Path, tf: str = "1m") -> DataReader:
    return DataReader("BTC/USDT", tf, "binance", root)


def slots(frame: pd.DataFrame) -> list[int]:
    return ((frame["ts"] - T0) // MINUTE).tolist()


def a_day(store: Store, hours: int = 24) -> None:
    """A page an hour; half past every hour a minute without trade."""
    for hour in range(hours):
        first = hour * 60
        prices = {s: 100.0 + s % 17 for s in range(first, first + 60) if s % 60 != 30}
        store.append_page(BTC, bars(prices), span(first, first + 60), fence=1, known_at=hour)


def test_a_range_is_half_open_and_in_utc(store: Store, tmp_path: Path) -> None:
    a_day(store, 3)
    store.compact(BTC)
    ours = reader(tmp_path)
    by_text = ours.read("2024-01-01T01:00", "2024-01-01T01:03:00Z")
    assert slots(by_text) == [60, 61, 62]
    for start, end in (
        (at(60), at(63)),
        (str(at(60)), at(63)),
        (datetime(2024, 1, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, 3)),
        ("2024-01-01T03:00+02:00", "2024-01-01 01:03"),
        (at(60) - 1, at(62) + 1),
    ):
        assert ours.read(start, end).equals(by_text)


def test_either_end_may_be_left_out(store: Store, tmp_path: Path) -> None:
    a_day(store, 2)
    for _ in range(2):
        assert slots(reader(tmp_path).read()) == list(range(120))
        assert slots(reader(tmp_path).read(start=at(100))) == list(range(100, 120))
        assert slots(reader(tmp_path).read(end=at(10))) == list(range(10))
        store.compact(BTC)


def test_a_frame_has_the_columns_of_the_seed_in_order(store: Store, tmp_path: Path) -> None:
    a_day(store, 1)
    ours = reader(tmp_path)
    frame = ours.read(at(0), at(60))
    assert list(frame.columns) == CANDLE_SCHEMA.names
    assert frame["ts"].dtype == np.int64
    assert frame["is_gap"].dtype == np.bool_
    assert ours.arrow(at(0), at(60)).schema.equals(CANDLE_SCHEMA)
    as_polars = ours.polars(at(0), at(60))
    assert isinstance(as_polars, polars.DataFrame)
    assert as_polars["c"].to_list() == frame["c"].tolist()


def test_gaps_are_told_or_left_out(store: Store, tmp_path: Path) -> None:
    a_day(store, 1)
    for _ in range(2):
        told = reader(tmp_path).read(at(29), at(32))
        assert told["is_gap"].tolist() == [False, True, False]
        assert told["gap_reason"][1] == "no_trade"
        assert slots(reader(tmp_path).read(at(29), at(32), gaps="omit")) == [29, 31]
        store.compact(BTC)
    with pytest.raises(ValueError, match="include"):
        reader(tmp_path).read(gaps="sometimes")  # type: ignore[arg-type]


def test_a_read_is_never_behind(store: Store, tmp_path: Path) -> None:
    ours = reader(tmp_path)
    a_day(store, 1)
    store.compact(BTC)
    store.append_page(BTC, flat(60, 2), span(60, 62), fence=1, known_at=100)
    store.append_group([Page.of(BTC, flat(62, 1, 7.0), span(62, 63), fence=1, known_at=101)])
    store.append_page(BTC, flat(59, 1, 8.0), span(59, 60), fence=1, known_at=102)
    frame = ours.read(at(58), at(70))
    assert slots(frame) == [58, 59, 60, 61, 62]
    assert frame["ver"].tolist() == [1, 2, 1, 1, 1]
    assert frame["o"].tolist()[1:] == [8.0, 100.0, 100.0, 7.0]
    store.compact(BTC)
    assert ours.read(at(58), at(70)).equals(frame)


def test_as_of_tells_what_was_known(store: Store, tmp_path: Path) -> None:
    a_day(store, 2)
    store.append_page(BTC, flat(5, 1, 9.0), span(5, 6), fence=1, known_at=50)
    for _ in range(2):
        now, then = reader(tmp_path).read(), reader(tmp_path).read(as_of=0)
        assert slots(now) == list(range(120))
        assert slots(then) == list(range(60))
        assert (now["o"][5], then["o"][5]) == (9.0, 105.0)
        assert then["gap_reason"][30] == "no_trade"
        assert reader(tmp_path).read(as_of="1970-01-01T00:00:00.050Z").equals(now)
        store.compact(BTC)


def test_long_ranges_come_in_batches(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (segment, part, snapshot, compaction):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", 50)
    monkeypatch.setattr("collector.reader.ROWS_PER_GROUP", 25)
    monkeypatch.setattr("collector.reader.GROUPS_PER_BATCH", 2)
    a_day(store, 4)
    for _ in range(2):
        batches = list(reader(tmp_path).batches())
        assert len(batches) > 4
        assert max(len(batch) for batch in batches) <= 50
        ts = np.concatenate([batch["ts"].to_numpy() for batch in batches])
        assert ((ts - T0) // MINUTE).tolist() == list(range(240))
        assert reader(tmp_path).arrow()["ts"].to_numpy().tolist() == ts.tolist()
        assert slots(reader(tmp_path, "5m").read()) == list(range(0, 240, 5))
        store.compact(BTC)


def test_a_timeframe_that_was_never_stored_is_made_of_minutes(store: Store, tmp_path: Path) -> None:
    a_day(store, 2)
    store.append_page(BTC, flat(7, 1, 500.0), span(7, 8), fence=1, known_at=99)
    for _ in range(2):
        five = reader(tmp_path, "5m").read(at(2), at(36))
        assert slots(five) == [5, 10, 15, 20, 25, 30, 35]
        assert five["h"][0] == 502.0
        assert five["ver"].tolist() == [2, 1, 1, 1, 1, 1, 1]
        assert five["is_gap"].tolist() == [False] * 5 + [True, False]
        assert five["gap_reason"][5] == "no_trade"
        assert five["v"][1] == sum((100.0 + s % 17) * 10 for s in range(10, 15))
        hours = reader(tmp_path, "1h").read()
        assert slots(hours) == [0, 60]
        assert len(reader(tmp_path, "1d").read()) == 0
        store.compact(BTC)


def test_a_stored_timeframe_is_read_and_not_made(store: Store, tmp_path: Path) -> None:
    a_day(store, 1)
    five = Series.of("binance", "BTC/USDT", "5m")
    store.append_page(five, flat(0, 1, 42.0), span(0, 5), fence=1, known_at=1)
    assert reader(tmp_path, "5m").read()["o"].tolist() == [42.0]


def test_nothing_stored_is_an_empty_frame(tmp_path: Path) -> None:
    for tf in ("1m", "5m"):
        frame = reader(tmp_path, tf).read("2020-01-01", "2030-01-01")
        assert len(frame) == 0
        assert list(frame.columns) == CANDLE_SCHEMA.names
    assert list(reader(tmp_path).batches()) == []
    assert len(reader(tmp_path).read(at(5), at(5))) == 0


def test_nonsense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="timeframe"):
        reader(tmp_path, "1y")
    with pytest.raises(ValueError, match="exchange id"):
        DataReader("BTC/USDT", "1m", "../binance", tmp_path)
    with pytest.raises(ValueError, match="isoformat"):
        reader(tmp_path).read("yesterday")


@pytest.mark.parametrize(
    ("moment", "ms"),
    [
        (T0, T0),
        ("2024-01-01", T0),
        ("2024-01-01T00:00:00Z", T0),
        (date(2024, 1, 1), T0),
        (datetime(2024, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), T0),
        (pd.Timestamp("2024-01-01"), T0),
        ("2024-01-01T00:00:00.123", T0 + 123),
    ],
)
def test_a_moment_can_be_said_in_many_ways(moment: Any, ms: int) -> None:
    assert epoch_ms(moment) == ms


def test_the_lake_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HOME", "/srv/collector")
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    assert default_root() == "/srv/collector/data"
    monkeypatch.setenv("COLLECTOR_DATA", "/lake")
    assert default_root() == "/lake"
