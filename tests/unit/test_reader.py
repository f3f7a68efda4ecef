"""Ranges in, candles out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars
import pytest

from collector.errors import NotStored
from collector.market.candles import CANDLE_SCHEMA, CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.reader import CandleReader, default_root, epoch_ms
from collector.store import compaction, part, reading, segment, snapshot
from collector.store.copies import Copies
from collector.store.page import Page
from collector.store.snapshot import SeriesSnapshot
from collector.store.store import Store
from tests.support.bars import BTC, MINUTE, T0, at, bars, flat, span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

FIVE = Series.of("binance", "BTC/USDT", "5m")
FIFTEEN = Series.of("binance", "BTC/USDT", "15m")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def reader(root: Path, tf: str = "1m") -> CandleReader:
    return CandleReader("BTC/USDT", tf, "binance", root)


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
    monkeypatch.setattr(reading, "ROWS_PER_GROUP", 25)
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
        assert five["gap_reason"][5] == "partial"
        assert five["v"][1] == sum((100.0 + s % 17) * 10 for s in range(10, 15))
        hours = reader(tmp_path, "1h").read()
        assert slots(hours) == [0, 60]
        assert len(reader(tmp_path, "1d").read()) == 0
        store.compact(BTC)


def test_bars_of_the_timeframe_itself_come_first_and_made_ones_fill_the_rest(
    store: Store, tmp_path: Path
) -> None:
    a_day(store, 1)
    store.append_page(FIVE, flat(10, 1, 42.0), span(10, 15), fence=1, known_at=1)
    made = reader(tmp_path, "5m").read(as_of=0)["o"].tolist()
    for series in (BTC, FIVE):
        five = reader(tmp_path, "5m").read()
        assert slots(five) == list(range(0, 60, 5))
        assert five["o"].tolist() == [*made[:2], 42.0, *made[3:]]
        store.compact(series)


def test_bars_left_out_are_fillers_and_never_bars_with_volume(store: Store, tmp_path: Path) -> None:
    """Minute 30 had no trade, 40-44 had none, 50-54 are missing."""
    quiet = {30, *range(40, 45)}
    store.append_page(
        BTC,
        bars({s: 100.0 for s in range(50) if s not in quiet}),
        span(0, 50),
        fence=1,
        known_at=1,
    )
    store.append_page(BTC, flat(55, 5), span(55, 60), fence=1, known_at=1)
    for _ in range(2):
        told = reader(tmp_path, "5m").read().set_index("ts")
        assert told["gap_reason"].dropna().to_dict() == {
            at(30): "partial",
            at(40): "no_trade",
            at(50): "missing",
        }
        assert told.loc[[at(30), at(40), at(50)], "is_gap"].all()
        left = reader(tmp_path, "5m").read(gaps="omit")
        assert slots(left) == [0, 5, 10, 15, 20, 25, 30, 35, 45, 55]
        assert (left["v"] > 0).all()
        store.compact(BTC)


@pytest.mark.parametrize("copies", [False, True])
def test_longer_bars_are_made_of_whatever_shorter_ones_there_are(
    store: Store, tmp_path: Path, copies: bool
) -> None:
    """No minutes: 5m for the first two hours, 15m for the last two of three."""
    fives = CandleBatch.of([(at(5 * n), 1.0, 3.0, 0.5, 2.0, 1.0) for n in range(24)])
    quarters = CandleBatch.of([(at(15 * n), 5.0, 7.0, 4.0, 6.0, 10.0) for n in range(4, 12)])
    store.append_page(FIVE, fives, span(0, 120), fence=1, known_at=1)
    store.append_page(FIFTEEN, quarters, span(60, 180), fence=1, known_at=1)
    if copies:
        for series in (FIVE, FIFTEEN):
            store.compact(series)
    hours = reader(tmp_path, "1h").read()
    assert slots(hours) == [0, 60, 120]
    assert hours["v"].tolist() == [12.0, 40.0, 40.0]
    assert hours["h"].tolist() == [3.0, 7.0, 7.0]
    assert not hours["is_gap"].any()
    # Two quarters of an hour are 5m bars, and two are the exchange's own.
    both = reader(tmp_path, "30m").read(at(30), at(120))
    assert (slots(both), both["v"].tolist()) == ([30, 60, 90], [6.0, 20.0, 20.0])


def test_minutes_go_before_other_shorter_bars_and_are_filled_from_them(
    store: Store, tmp_path: Path
) -> None:
    """Minutes 10-14 are missing; the 5m bar of that time is there, and another one."""
    for first, count in ((0, 10), (15, 45)):
        page = span(first, first + count)
        store.append_page(BTC, flat(first, count), page, fence=1, known_at=1)
    fives = CandleBatch.of([(at(s), 9.0, 900.0, 8.0, 9.5, 7.0) for s in (0, 10)])
    store.append_page(FIVE, fives, [span(0, 5), span(10, 15)], fence=1, known_at=1)
    fifteen = reader(tmp_path, "15m").read()
    assert slots(fifteen) == [0, 15, 30, 45]
    assert not fifteen["is_gap"].any()
    assert fifteen["h"].tolist() == [900.0, 102.0, 102.0, 102.0]
    assert fifteen["v"].tolist() == [7.0 + 5 * 1000.0 + 7.0, 15_000.0, 15_000.0, 15_000.0]


def test_collected_months_come_first_and_days_fill_the_others(store: Store, tmp_path: Path) -> None:
    """Months differ in length: a slot is found by the calendar and not by a step."""
    day_ms, months = 86_400_000, ("2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01")
    opens = [epoch_ms(each) for each in months]
    days = T0 + np.arange(91) * day_ms
    daily = CandleBatch.of_columns(
        np.column_stack([days, *(np.full(91, 2.0) for _ in range(4)), np.ones(91), np.ones(91)])
    )
    whole = Interval(opens[0], opens[-1])
    daily_series = Series.of("binance", "BTC/USDT", "1d")
    store.append_page(daily_series, daily, [whole], fence=1, known_at=1)
    monthly = CandleBatch.of_columns(np.array([[opens[1], 7.0, 7.0, 7.0, 7.0, 5.0, 5.0]]))
    february = Interval(opens[1], opens[2])
    monthly_series = Series.of("binance", "BTC/USDT", "1M")
    store.append_page(monthly_series, monthly, [february], fence=1, known_at=1)
    frame = reader(tmp_path, "1M").read()
    assert frame["ts"].tolist() == opens[:3]
    assert frame["o"].tolist() == [2.0, 7.0, 2.0]
    assert frame["v"].tolist() == [31.0, 5.0, 31.0]


def test_a_filler_carries_the_last_close_whichever_series_had_it(
    store: Store, tmp_path: Path
) -> None:
    """A minute at 3; the exchange's own 5m bar at 5; then nothing was traded."""
    store.append_page(BTC, flat(0, 5, 50.0), span(0, 30), fence=1, known_at=1)
    store.append_page(FIVE, flat(5, 1, 60.0), span(5, 10), fence=1, known_at=1)
    whole = reader(tmp_path, "5m").read()
    assert whole["c"].tolist() == [51.0, 61.0, 61.0, 61.0, 61.0, 61.0]
    assert whole["v"].tolist() == [2500.0, 600.0, 0.0, 0.0, 0.0, 0.0]
    assert reader(tmp_path, "5m").read(at(15), at(25))["c"].tolist() == [61.0, 61.0]


def test_a_file_of_made_bars_is_read_when_its_minutes_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path, copies=Copies((FIVE.timeframe,)))
    a_day(store, 2)
    store.compact(BTC)
    before = reader(tmp_path, "5m").read()
    store.storage.delete("binance/BTC-USDT/1m.parquet")
    assert reader(tmp_path, "5m").read().equals(before)


def long_read(monkeypatch: pytest.MonkeyPatch, root: Path, tf: str = "1m") -> Iterator[list[Any]]:
    """The rows of a read that comes in pieces of 50 stored bars."""
    monkeypatch.setattr(reading, "ROWS_PER_GROUP", 25)
    for batch in reader(root, tf).batches():
        yield batch.select(["ts", "o", "ver", "gap_reason"]).to_pylist()


@pytest.mark.parametrize("tf", ["1m", "5m"])
@pytest.mark.parametrize("sealed", [False, True])
def test_a_long_read_tells_the_moment_at_which_it_began(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tf: str, sealed: bool
) -> None:
    """Behind its back bars change and come, and a compaction deletes the parts it has listed."""
    a_day(store, 4)
    if sealed:
        store.compact(BTC)
    store.append_page(BTC, flat(7, 1, 33.0), span(7, 8), fence=1, known_at=98)
    store.append_page(BTC, flat(200, 1, 34.0), span(200, 201), fence=1, known_at=99)
    expected = [row for batch in long_read(monkeypatch, tmp_path, tf) for row in batch]
    told = long_read(monkeypatch, tmp_path, tf)
    rows = next(told)
    store.append_page(BTC, flat(0, 240, 77.0), span(0, 240), fence=1, known_at=100)
    store.append_page(BTC, flat(240, 9), span(240, 249), fence=1, known_at=101)
    store.compact(BTC)
    for later in told:
        rows += later
    assert rows == expected
    assert len(rows) == 240 // (1 if tf == "1m" else 5)


def test_a_read_that_has_given_nothing_begins_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction comes between the look and the first rows."""
    a_day(store, 4)
    look = SeriesSnapshot.unmerged
    done: list[bool] = []

    def compacted_first(self: SeriesSnapshot, *range_ms: int) -> Any:
        if not done:
            done.append(True)
            Store(tmp_path).compact(BTC)
        return look(self, *range_ms)

    monkeypatch.setattr(SeriesSnapshot, "unmerged", compacted_first)
    assert slots(reader(tmp_path).read()) == list(range(240))


@pytest.mark.parametrize(
    ("symbol", "tf", "exchange", "said", "near"),
    [
        ("BTC/USTD", "1m", "binance", "did you mean BTC/USDT?", "BTC/USDT"),
        ("BTCUSDT", "1m", "binance", "did you mean BTC/USDT?", "BTC/USDT"),
        ("BTC/USDT", "1m", "binanse", "did you mean binance?", "binance"),
        ("BTC/USDT", "30s", "binance", "there is 1m", "1m"),
    ],
)
def test_what_is_not_stored_is_an_error_with_names_like_it(
    store: Store, tmp_path: Path, symbol: str, tf: str, exchange: str, said: str, near: str
) -> None:
    a_day(store, 1)
    ours = CandleReader(symbol, tf, exchange, tmp_path)
    assert not ours.is_stored()
    for read in (ours.read, ours.arrow, ours.polars, lambda: list(ours.batches())):
        with pytest.raises(NotStored, match="nothing is stored for") as caught:
            read()
        assert said in str(caught.value)
        assert caught.value.near[0] == near


def test_an_empty_lake_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotStored, match="nothing was collected yet"):
        reader(tmp_path).read("2020-01-01", "2030-01-01")


def test_a_range_without_rows_is_an_empty_frame(store: Store, tmp_path: Path) -> None:
    a_day(store, 1)
    for tf in ("1m", "5m", "1d"):
        frame = reader(tmp_path, tf).read("2020-01-01", "2020-01-02")
        assert len(frame) == 0
        assert list(frame.columns) == CANDLE_SCHEMA.names
    assert len(reader(tmp_path).read(at(5), at(5))) == 0
    silent = Series.of("binance", "DEAD/USDT", "1m")
    store.append_page(silent, CandleBatch.empty(), span(0, 60), fence=1, known_at=1)
    assert len(CandleReader("DEAD/USDT", "1m", "binance", tmp_path).read()) == 0


def test_nonsense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="timeframe"):
        reader(tmp_path, "1y")
    with pytest.raises(ValueError, match="exchange id"):
        CandleReader("BTC/USDT", "1m", "../binance", tmp_path)
    with pytest.raises(ValueError, match="'yesterday' is no moment: write 2025-01-01"):
        reader(tmp_path).read("yesterday")


def test_a_date_without_dashes_and_seconds_are_not_1970(store: Store, tmp_path: Path) -> None:
    a_day(store, 24)
    hour = reader(tmp_path).read(20240101, "2024-01-01T01:00")
    assert slots(hour) == list(range(60))
    for start in ("20240101", T0 // 1000, float(T0 // 1000), np.datetime64("2024-01-01")):
        assert reader(tmp_path).read(start, T0 // 1000 + 3600).equals(hour)
    with pytest.raises(ValueError, match="13 digits"):
        reader(tmp_path).read(19_723)


def test_the_lake_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLLECTOR_HOME", "/srv/collector")
    monkeypatch.delenv("COLLECTOR_DATA", raising=False)
    assert default_root() == "/srv/collector/data"
    monkeypatch.setenv("COLLECTOR_DATA", "/lake")
    assert default_root() == "/lake"
