"""Answers: rates, volumes, candles; while a writer goes on, and while buckets change length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.errors import DataInvalid
from collector.history import reader as reading
from collector.history import writer as writing
from collector.history.bucket_files import CURRENT, BucketFiles
from collector.history.engine import History
from collector.history.reader import HistoryReader
from collector.history.refusal import FilledTooMuch, Refused
from collector.history.uint256 import LIMIT, SCALE
from collector.history.writer import HistoryWriter
from collector.market.candles import CANDLE_SCHEMA
from collector.store.disk import LocalDisk
from tests.support.history_trades import (
    GOLD,
    MINUTE,
    OIL,
    OTHER,
    PAIR,
    SALT,
    T0,
    added,
    at,
    deleted,
    read,
    sale,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.history.bucket_columns import BucketColumns
    from collector.history.event import Event
    from collector.history.pair import Pair
    from tests.support.lakes import Lake

PRICES = {0.1: 5, 0.6: 7, 1.2: 6, 4.5: 9, 4.9: 8}
"""By minute; each sells 10."""


def events(prices: dict[float, int] | None = None) -> list[tuple[int, Event]]:
    given = PRICES if prices is None else prices
    return [
        (n, added(f"t{n}", minute, sale(price)))
        for n, (minute, price) in enumerate(given.items(), start=1)
    ]


@pytest.fixture(params=[True, False], ids=["buckets", "ledger"])
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> HistoryReader:
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    history_writer.apply(events()[:3])
    history_writer.save()
    history_writer.apply(events()[3:])
    return HistoryReader("n", "1:GOLD", "1:OIL", tmp_path, cache=request.param)


def items(answer: dict[str, Any], *names: str) -> list[list[Any]]:
    def small(value: Any) -> Any:
        return int(value) // SCALE if isinstance(value, str) and len(value) > 15 else value

    return [[small(item[name]) for name in names] for item in answer["items"]]


def test_candles_open_at_the_close_before_them(reader: HistoryReader) -> None:
    answer = reader.market_rate("ohlcv")
    assert items(answer, "ts", "open", "high", "low", "close", "trades", "filled") == [
        [at(0), 5, 7, 5, 7, 2, False],
        [at(1), 7, 7, 6, 6, 1, False],
        [at(4), 6, 9, 6, 8, 2, False],
    ]
    assert answer["items"][0] == {
        "ts": at(0),
        "open": str(5 * SCALE),
        "high": str(7 * SCALE),
        "low": str(5 * SCALE),
        "close": str(7 * SCALE),
        "sum_base": "20",
        "sum_quote": "120",
        "first_ts": at(0.1),
        "last_ts": at(0.6),
        "trades": 2,
        "filled": False,
    }
    assert (answer["applied_through"], answer["next_cursor"]) == (5, None)


def test_an_answer_says_where_it_comes_from(tmp_path: Path) -> None:
    HistoryWriter(LocalDisk(tmp_path), "n").apply(events())
    for cache, source in ((True, "buckets"), (False, "ledger")):
        reader = HistoryReader("n", GOLD, OIL, tmp_path, cache=cache)
        for answer in (reader.market_rate("spot"), reader.market_rate("ohlcv"), reader.volume()):
            assert answer["source"] == source
            assert answer["applied_through"] == 5


def test_holes_are_filled_at_the_last_price(reader: HistoryReader) -> None:
    answer = reader.market_rate("ohlcv", at(2), at(7), fill=True)
    assert items(answer, "ts", "open", "close", "trades", "filled") == [
        [at(2), 6, 6, 0, True],
        [at(3), 6, 6, 0, True],
        [at(4), 6, 8, 2, False],
        [at(5), 8, 8, 0, True],
        [at(6), 8, 8, 0, True],
    ]
    early = reader.market_rate("ohlcv", at(-3), at(2), fill=True)
    assert items(early, "ts", "filled") == [[at(0), False], [at(1), False]]


def test_filling_ends_at_a_bound_unless_it_goes_by_the_page(
    reader: HistoryReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_FILLED", 6)
    assert len(reader.read(0, at(6), fill=True)) == 6
    for ask in (reader.read, reader.market_rate):
        mode = [] if ask == reader.read else ["ohlcv"]
        with pytest.raises(FilledTooMuch, match="7 candles, and at most 6 are filled"):
            ask(*mode, at(0), at(7), fill=True)
        assert len(ask(*mode, 0, at(7), fill=True, bucket=120)) > 3
    with pytest.raises(FilledTooMuch):
        next(reader.batches(at(2), at(900), fill=True))
    page = reader.market_rate("ohlcv", at(0), at(10**7), fill=True, limit=4)
    assert len(page["items"]) == 4
    assert len(reader.read(at(0), at(10**7))) == 3


def test_longer_candles_are_made_of_buckets(reader: HistoryReader) -> None:
    answer = reader.market_rate("ohlcv", bucket=120)
    assert items(answer, "ts", "open", "high", "low", "close", "sum_base", "trades") == [
        [at(0), 5, 7, 5, 6, "30", 3],
        [at(4), 6, 9, 6, 8, "20", 2],
    ]
    assert items(reader.market_rate("ohlcv", at(1), at(5), bucket=120), "ts") == [[at(4)]]


@pytest.mark.parametrize("bucket", [0, -60, 59, 90])
def test_a_bucket_that_is_no_multiple_is_refused(reader: HistoryReader, bucket: int) -> None:
    for ask in (
        lambda: reader.market_rate("ohlcv", bucket=bucket),
        lambda: reader.volume(bucket=bucket),
        lambda: reader.market_rate("spot", bucket=bucket),
    ):
        with pytest.raises(Refused, match="multiple of 60"):
            ask()


def test_spot_and_vwap_count_exactly_the_trades_of_the_window(reader: HistoryReader) -> None:
    spot = reader.market_rate("spot", at(0.2), at(4.6))
    assert (spot["price"], spot["ts"]) == (str(9 * SCALE), at(4.5))
    assert reader.market_rate("spot", at(0), at(0.6))["price"] == str(5 * SCALE)
    assert reader.market_rate("spot", at(2), at(4))["price"] is None
    vwap = reader.market_rate("vwap", at(0.2), at(4.6))
    assert (vwap["sum_base"], vwap["sum_quote"], vwap["trades"]) == ("30", "220", 3)
    assert vwap["price"] == str(220 * SCALE // 30)
    assert reader.market_rate("vwap", at(2), at(4))["price"] is None


def test_volume_is_one_sum_or_one_for_each_bucket(reader: HistoryReader) -> None:
    whole = reader.volume(at(0.5), at(4.6))
    assert (whole["sum_base"], whole["sum_quote"], whole["trades"]) == ("30", "220", 3)
    split = reader.volume(bucket=60)
    assert items(split, "ts", "sum_base", "trades") == [
        [at(0), "20", 2],
        [at(1), "10", 1],
        [at(4), "20", 2],
    ]
    assert set(split["items"][0]) == {"ts", "sum_base", "sum_quote", "trades"}


def test_pages_go_on_where_the_one_before_ended(reader: HistoryReader) -> None:
    first = reader.market_rate("ohlcv", at(0), at(6), fill=True, limit=4)
    rest = reader.market_rate("ohlcv", at(0), at(6), fill=True, cursor=first["next_cursor"])
    assert [len(first["items"]), len(rest["items"]), rest["next_cursor"]] == [4, 2, None]
    whole = reader.market_rate("ohlcv", at(0), at(6), fill=True)
    assert first["items"] + rest["items"] == whole["items"]
    for wrong in ({"limit": 0}, {"cursor": "x"}):
        with pytest.raises(Refused):
            reader.market_rate("ohlcv", **wrong)


def test_a_reversed_pair_and_an_unknown_mode_are_refused(reader: HistoryReader) -> None:
    with pytest.raises(Refused, match="canonical pair is 1:GOLD/1:OIL"):
        HistoryReader("n", "1:OIL", "1:GOLD", "x")
    with pytest.raises(Refused, match="mode"):
        reader.market_rate("mean")  # type: ignore[arg-type]


def test_what_nobody_traded_is_empty(reader: HistoryReader, tmp_path: Path) -> None:
    for nothing in (
        HistoryReader("n", GOLD, SALT, tmp_path),
        HistoryReader("unknown", GOLD, OIL, tmp_path, cache=False),
        HistoryReader("unknown", GOLD, OIL, tmp_path),
    ):
        assert nothing.market_rate("ohlcv", fill=True)["items"] == []
        assert nothing.market_rate("spot")["price"] is None
        assert nothing.volume()["trades"] == 0
        assert len(nothing.read()) == 0


def test_a_frame_has_the_candle_columns_as_floats(reader: HistoryReader) -> None:
    frame = reader.read(at(0), at(5), fill=True)
    assert list(frame.columns) == CANDLE_SCHEMA.names
    assert frame.ts.tolist() == [at(n) for n in range(5)]
    assert frame.o.tolist() == [5, 7, 6, 6, 6]
    assert frame.h.tolist() == [7, 7, 6, 6, 9]
    assert frame.is_gap.tolist() == [False, False, True, True, False]
    assert frame.gap_reason.tolist()[2] == "no_trade"
    assert frame.v.tolist() == pytest.approx([20e-18, 10e-18, 0, 0, 20e-18])
    assert set(frame.source) == {"n"}


def test_sums_of_many_buckets_may_pass_256_bits(tmp_path: Path) -> None:
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    huge = sale(1, value=LIMIT - 1)
    history_writer.apply([(n + 1, added(str(n), n, huge)) for n in range(3)])
    reader = HistoryReader("n", GOLD, OIL, tmp_path)
    assert reader.volume()["sum_base"] == str(3 * (LIMIT - 1))
    assert reader.market_rate("vwap")["price"] == str(SCALE)
    (candle,) = reader.market_rate("ohlcv", bucket=600)["items"]
    assert candle["sum_quote"] == str(3 * (LIMIT - 1))


def test_a_reader_follows_the_writer_through_saves_and_merges(lake: Lake) -> None:
    history_writer = HistoryWriter(lake.storage(), "n")
    reader = HistoryReader("n", GOLD, OIL, lake.storage())
    for n in range(1, 30):
        history_writer.apply([(n, added(str(n), n / 7, sale(n)))])
        if n % 5 == 0:
            history_writer.save()
        answer = reader.market_rate("spot")
        assert (answer["price"], answer["applied_through"]) == (str(n * SCALE), n)
        assert reader.volume(at(0.05))["trades"] == n


class Interrupting(LocalDisk):
    """Lets something happen just before a file is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.before_read: Callable[[str], None] = lambda path: None

    def read(self, path: str) -> bytes:
        self.before_read(path)
        return super().read(path)


def test_an_answer_is_of_one_moment_even_when_a_reorg_is_applied_while_it_is_made(
    tmp_path: Path,
) -> None:
    """A rebuilt bucket never stands beside one that is not rebuilt yet."""
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    old = [added(f"old{n}", n, sale(5)) for n in range(2)]
    new = [added(f"new{n}", n, sale(9)) for n in range(2)]
    history_writer.apply(list(enumerate(old, start=1)))
    history_writer.save()
    disk = Interrupting(tmp_path)
    reader = HistoryReader("n", GOLD, OIL, disk)
    moments = []

    def reorg(path: str) -> None:
        if "-2-" in path and "/buckets/" in path:
            disk.before_read = lambda path: None
            moments.append(path)
            history_writer.apply(list(enumerate([*map(deleted, reversed(old)), *new], start=3)))
            history_writer.save()

    disk.before_read = reorg
    answer = reader.market_rate("ohlcv")
    assert moments
    assert items(answer, "close") == [[9], [9]]
    assert answer["applied_through"] == 6


def test_a_change_is_seen_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    from collector.history.engine import PendingChange
    from tests.support.history_trades import Trades, trade

    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    history_writer.apply(events({0: 5, 1: 6}))
    history, change = history_writer.history, PendingChange()
    before = read(history)
    ledger = Trades([trade(0, 8), trade(1, 9)])
    for minute in (0, 1):
        history.prepare_rebuild(change, ledger, at(minute), [PAIR])
        assert read(history) == before
    history.commit(change)
    assert [each.close for each in read(history)] == [8 * SCALE, 9 * SCALE]


def rebucketed(history_writer: HistoryWriter) -> int:
    steps = 1
    while history_writer.rebucket():
        steps += 1
        assert steps < 100
    return steps


def test_another_bucket_length_is_built_from_the_ledger_while_old_buckets_answer(
    lake: Lake,
) -> None:
    month = 60 * 24 * 31
    given = events({0.1: 5, 1.2: 6, month + 3: 7, month + 4: 9})
    HistoryWriter(lake.storage(), "n").apply(given)
    history_writer = HistoryWriter(lake.storage(), "n", bucket_sec=300)
    reader = HistoryReader("n", GOLD, OIL, lake.storage())
    minutes = reader.market_rate("ohlcv")["items"]
    assert history_writer.rebucket()
    assert reader.market_rate("ohlcv")["items"] == minutes
    history_writer.apply([(5, added("late", 2, sale(4))), (6, deleted(given[3][1]))])
    history_writer.apply([(7, added("new", month + 7, sale(8)))])
    assert len(reader.market_rate("ohlcv")["items"]) == len(minutes) + 1
    rebucketed(history_writer)
    answer = reader.market_rate("ohlcv")
    assert items(answer, "ts", "close", "trades") == [
        [at(0), 4, 3],
        [at(month), 7, 1],
        [at(month + 5), 8, 1],
    ]
    assert answer["applied_through"] == 7
    assert not history_writer.rebucket()
    assert not [path for path in lake.everything() if "/buckets/60/" in path or "next" in path]
    with pytest.raises(Refused, match="multiple of 300"):
        reader.market_rate("ohlcv", bucket=60)


def test_an_answer_has_buckets_of_one_length_while_they_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stamp of the document and the document are two reads; a writer may come between."""
    HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=300).apply(events())
    reader = HistoryReader("n", GOLD, OIL, tmp_path)
    assert len(reader.market_rate("ohlcv")["items"]) == 1
    history_writer, seen = HistoryWriter(LocalDisk(tmp_path), "n"), []

    def stamp(self: BucketFiles, name: str = CURRENT) -> str | None:
        before = original(self, name)
        if not seen:
            seen.append(before)
            rebucketed(history_writer)
            history_writer.apply([(6, added("t6", 6, sale(4)))])
        return before

    original = BucketFiles.stamp
    monkeypatch.setattr(BucketFiles, "stamp", stamp)
    answer = reader.market_rate("ohlcv")
    assert items(answer, "ts", "trades") == [[at(0), 2], [at(1), 1], [at(4), 2], [at(6), 1]]


def test_sums_take_as_many_steps_as_there_are_months_with_trades(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_ago = (1 - T0) / MINUTE
    HistoryWriter(LocalDisk(tmp_path), "n").apply(events({long_ago: 5, 0: 6, 1: 7}))
    looks = []
    original = History.columns

    def columns(self: History, pair: Pair, from_ms: int, to_ms: int) -> BucketColumns:
        looks.append(from_ms)
        return original(self, pair, from_ms, to_ms)

    monkeypatch.setattr(History, "columns", columns)
    assert HistoryReader("n", GOLD, OIL, tmp_path).volume()["trades"] == 3
    assert len(looks) == 2


def test_building_another_length_goes_on_after_a_death(tmp_path: Path) -> None:
    days = 60 * 24
    given = events({n * 31 * days: n + 1 for n in range(6)})
    HistoryWriter(LocalDisk(tmp_path), "n").apply(given)
    steps = 0
    for _ in range(20):
        history_writer = HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=3_600)
        steps += 1
        if not history_writer.rebucket():
            break
    assert steps == 7, "a month a step, whoever does it, and the last one puts it in place"
    reader = HistoryReader("n", GOLD, OIL, tmp_path)
    assert items(reader.market_rate("ohlcv"), "close") == [[n + 1] for n in range(6)]


def test_a_month_whose_trades_are_all_deleted_does_not_stop_the_building(tmp_path: Path) -> None:
    month = 60 * 24 * 31
    given = events({0: 5, month: 6, 2 * month: 7})
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    history_writer.apply([*given, (4, deleted(given[1][1]))])
    again = HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=300)
    steps = [again.rebucket() for _ in range(3)]
    assert steps == [True, True, False]
    assert [each.close // SCALE for each in read(again.history)] == [5, 7]


def test_buckets_nobody_wants_any_more_are_forgotten(tmp_path: Path) -> None:
    HistoryWriter(LocalDisk(tmp_path), "n").apply(events())
    assert HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=300).rebucket()
    back = HistoryWriter(LocalDisk(tmp_path), "n")
    assert not back.rebucket()
    assert len(read(back.history)) == 3
    assert not list(tmp_path.rglob("next.json"))


def test_a_length_that_cannot_hold_the_sums_is_refused_and_the_old_one_stays(
    tmp_path: Path,
) -> None:
    huge = sale(1, value=LIMIT - 1)
    given = [(1, added("a", 0, huge)), (2, added("b", 1, huge))]
    HistoryWriter(LocalDisk(tmp_path), "n").apply(given)
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=300)
    with pytest.raises(DataInvalid, match="300 s cannot hold"):
        history_writer.rebucket()
    assert len(read(history_writer.history)) == 2


def test_a_pair_that_was_emptied_keeps_its_last_price_through_everything(tmp_path: Path) -> None:
    both = added("x", 0, sale(5), sale(3, pair=OTHER))
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    history_writer.apply([(1, both), (2, added("y", 1, sale(6))), (3, deleted(both))])
    history_writer.save()
    again = HistoryWriter(LocalDisk(tmp_path), "n", bucket_sec=300)
    rebucketed(again)
    for each in (history_writer.history, again.history):
        assert each.last_price(OTHER) == 3 * SCALE
        assert each.last_price(PAIR) == 6 * SCALE


def test_memory_keeps_the_newest_month_of_a_pair_after_a_save(tmp_path: Path) -> None:
    months = [n * 31 * 60 * 24 for n in range(5)]
    history_writer = HistoryWriter(LocalDisk(tmp_path), "n")
    history_writer.apply(events(dict.fromkeys(months, 5)))
    history_writer.save()
    held = history_writer.history._pairs[PAIR].months
    assert [month is None for month in held.values()] == [True] * 4 + [False]
    history_writer.apply([(6, added("late", 1, sale(7)))])
    assert [each.trades for each in read(history_writer.history)] == [1, 1, 1, 1, 1, 1]
    assert writing.LONGEST_TAIL > 6
