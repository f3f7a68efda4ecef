"""Real trades become the bars that another program made of them.

That program opens a bar at its first trade; here a bucket opens at the close before it, and its
high and low include that. There is no other difference, and the places where it shows are counted.
The canonical pair is ETH/XRP: prices are inverted, so the highest there is the lowest here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.history.exchange_trades import exchange_event, scaled
from collector.history.pair import Asset
from collector.history.reader import HistoryReader
from collector.history.uint256 import SCALE
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.support.bars import recorded, recording

if TYPE_CHECKING:
    from pathlib import Path

XRP, ETH = Asset.of(0, "XRP"), Asset.of(0, "ETH")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = recording("XRP_ETH-trades")
    columns = (table[name].to_pylist() for name in ("id", "timestamp", "price", "amount"))
    events = [
        exchange_event(trade_id, ts, XRP, ETH, repr(price), repr(amount))
        for trade_id, ts, price, amount in zip(*columns, strict=True)
    ]
    folder = tmp_path_factory.mktemp("real")
    outcomes = HistoryWriter(LocalDisk(folder), "binance").apply(list(enumerate(events, start=1)))
    assert dict(outcomes) == {"added": 12_477}
    return folder


def inverted(price: float) -> int:
    return SCALE * SCALE // scaled(repr(price))


@pytest.mark.parametrize(
    ("name", "seconds", "opens", "highs", "lows"),
    [("1m", 60, 2_019, 833, 743), ("5m", 300, 594, 149, 124)],
)
def test_bars_differ_only_where_they_open_at_the_close_before(
    written: Path, name: str, seconds: int, opens: int, highs: int, lows: int
) -> None:
    theirs = recorded(f"XRP_ETH-{name}")
    reader = HistoryReader("binance", ETH, XRP, written)
    ours = reader.market_rate("ohlcv", bucket=seconds)["items"]
    assert [each["ts"] for each in ours] == theirs.ts.tolist()
    before: int | None = None
    moved = {"open": 0, "high": 0, "low": 0}
    for at, candle in enumerate(ours):
        first, high, low, close = (
            inverted(float(column[at])) for column in (theirs.o, theirs.l, theirs.h, theirs.c)
        )
        opened = first if before is None else before
        expected = {"open": opened, "high": max(high, opened), "low": min(low, opened)}
        assert {each: int(candle[each]) for each in expected} == expected
        assert int(candle["close"]) == close
        assert int(candle["sum_quote"]) / SCALE == theirs.v[at]
        for each, alone in (("open", first), ("high", high), ("low", low)):
            moved[each] += expected[each] != alone
        before = close
    assert moved == {"open": opens, "high": highs, "low": lows}


def test_buckets_themselves_are_their_bars_exactly(written: Path) -> None:
    """What is stored knows nothing of neighbours, so there even the opening price is the same."""
    theirs = recorded("XRP_ETH-1m")
    history = HistoryWriter(LocalDisk(written), "binance").history
    stored = list(history.columns(HistoryReader("binance", ETH, XRP, written).pair, 0, 1 << 47))
    assert len(stored) == len(theirs)
    for at, bucket in enumerate(stored):
        prices = (bucket.first, bucket.low, bucket.high, bucket.close)
        columns = (theirs.o, theirs.h, theirs.l, theirs.c)
        assert prices == tuple(inverted(float(column[at])) for column in columns)


def test_the_ledger_alone_answers_the_same(written: Path) -> None:
    cached = HistoryReader("binance", ETH, XRP, written)
    plain = HistoryReader("binance", ETH, XRP, written, cache=False)
    for seconds in (60, 300, 3_600):
        assert (
            cached.market_rate("ohlcv", bucket=seconds)["items"]
            == plain.market_rate("ohlcv", bucket=seconds)["items"]
        )
    assert cached.market_rate("vwap")["price"] == plain.market_rate("vwap")["price"]
