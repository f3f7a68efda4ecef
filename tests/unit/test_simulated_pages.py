"""Pages of bars: which rows Binance would send, in its spelling, and the bar that still runs."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.durations import MINUTE_MS
from collector.simulated.bars import FRAMES, MINUTE, Bars
from collector.simulated.encode import decimal, page_json, page_rows
from collector.simulated.faults.history import Missing, NoTrade, Revision
from collector.simulated.listing import WELL_KNOWN, SimulatedMarket, listings
from collector.simulated.truth import Truth
from collector.simulated.view import ClientView

NOW = 1_700_000_059_999  # 19.999 s into a minute.
RUNNING = MINUTE.floor(NOW)
TRUTH = Truth()
VIEW = ClientView(TRUTH)


def page(
    view: ClientView = VIEW,
    *,
    symbol: str = "BTCUSDT",
    interval: str = "1m",
    start: int | None = None,
    end: int | None = None,
    limit: int = 500,
    now: int = NOW,
) -> Bars:
    return view.page(symbol, FRAMES[interval], start, end, limit, now)


def opens(bars: Bars) -> list[int]:
    times: list[int] = bars.open_ms.tolist()
    return times


def same(left: Bars, right: Bars) -> bool:
    return bool((left.table == right.table).all())


def test_a_start_gives_the_first_bars_from_there() -> None:
    start = RUNNING - 5000 * MINUTE_MS
    assert opens(page(start=start - 1, limit=3)) == [start + step * MINUTE_MS for step in range(3)]
    assert opens(page(start=start + 1, limit=1)) == [start + MINUTE_MS]


def test_no_start_gives_the_last_bars_with_the_running_one() -> None:
    assert opens(page(limit=2)) == [RUNNING - MINUTE_MS, RUNNING]
    assert opens(page(limit=2, end=RUNNING - 1)) == [RUNNING - 2 * MINUTE_MS, RUNNING - MINUTE_MS]


def test_start_and_end_are_both_kept() -> None:
    start = RUNNING - 5000 * MINUTE_MS
    assert opens(page(start=start, end=start + MINUTE_MS)) == [start, start + MINUTE_MS]


def test_zero_gives_the_first_bars_there_are() -> None:
    listed = WELL_KNOWN[3].listed_ms
    assert opens(page(symbol="XRPUSDT", start=0, limit=2)) == [listed, listed + MINUTE_MS]
    assert opens(page(symbol="XRPUSDT", start=0, interval="1h", limit=1)) == [
        FRAMES["1h"].floor(listed)
    ]


def test_before_the_listing_there_is_nothing() -> None:
    listed = WELL_KNOWN[3].listed_ms
    assert len(page(symbol="XRPUSDT", end=listed - 1)) == 0
    assert len(page(symbol="XRPUSDT", now=listed - 1)) == 0


def test_the_future_is_not_shown() -> None:
    assert len(page(start=NOW + 1)) == 0
    assert opens(page(start=RUNNING, end=NOW + 10**9)) == [RUNNING]


def test_a_delisted_market_keeps_its_history() -> None:
    gone = SimulatedMarket(
        "GONE", "USDT", RUNNING - 900 * MINUTE_MS, 5.0, delisted_ms=RUNNING - MINUTE_MS
    )
    bars = page(ClientView(Truth(listings=(gone,))), symbol="GONEUSDT", limit=2)
    assert opens(bars) == [RUNNING - 3 * MINUTE_MS, RUNNING - 2 * MINUTE_MS]


@pytest.mark.parametrize("interval", ["1m", "5m", "4h", "1d", "1w"])
def test_closed_bars_are_the_truth(interval: str) -> None:
    frame = FRAMES[interval]
    start = frame.floor(NOW) - 30 * frame.ms
    closed = page(interval=interval, start=start, limit=30)
    assert same(closed, TRUTH.bars("BTC/USDT", interval, start, frame.floor(NOW)))


def test_the_running_bar_changes_until_it_is_the_truth() -> None:
    final = TRUTH.bars("BTC/USDT", "1m", RUNNING, RUNNING + 1).table[:, 0].tolist()
    seen = [
        page(limit=1, now=RUNNING + ms).table[:, 0].tolist() for ms in (0, 15_000, 40_000, 59_999)
    ]
    volumes = [bar[5] for bar in seen]
    assert volumes == sorted(set(volumes))
    assert all(bar[1] == final[1] for bar in seen)
    assert all(final[3] <= bar[3] <= bar[2] <= final[2] for bar in seen)
    assert page(start=RUNNING, limit=1, now=RUNNING + MINUTE_MS).table[:, 0].tolist() == final


def test_the_running_hour_holds_the_minutes_so_far() -> None:
    hour = FRAMES["1h"].floor(NOW)
    running = page(interval="1h", limit=1)
    minutes = page(start=hour)
    assert opens(running) == [hour]
    assert same(running, minutes.aggregate(FRAMES["1h"]))


def test_a_page_reaches_over_minutes_without_trades() -> None:
    start = RUNNING - 3000 * MINUTE_MS
    hole = (start + MINUTE_MS, start + 2000 * MINUTE_MS)
    view = ClientView(Truth(no_trade=(NoTrade(spans=(hole,)),)))
    assert opens(page(view, start=start, limit=2)) == [start, hole[1]]
    assert opens(page(view, end=hole[1], limit=2)) == [start, hole[1]]


def test_lost_bars_are_never_shown_but_are_in_the_truth() -> None:
    view = ClientView(TRUTH, missing=(Missing(ratio=0.2),))
    start = RUNNING - 2000 * MINUTE_MS
    shown = opens(page(view, start=start, limit=1000))
    true = opens(TRUTH.bars("BTCUSDT", "1m", start, shown[-1] + 1))
    assert len(shown) == 1000
    assert 1100 < len(true) < 1400
    assert set(shown) < set(true)
    assert opens(page(view, start=start, limit=1000)) == shown


def test_a_revised_bar_becomes_the_truth_some_time_after_its_close() -> None:
    view = ClientView(TRUTH, revisions=(Revision(after_ms=30_000),))
    start, closed = RUNNING, RUNNING + MINUTE_MS
    early = page(view, start=start, limit=1, now=closed + 29_999)
    final = page(view, start=start, limit=1, now=closed + 30_000)
    truth = TRUTH.bars("BTCUSDT", "1m", start, closed)
    assert same(final, truth)
    assert early.table[4, 0] != truth.table[4, 0]
    assert early.table[5, 0] < truth.table[5, 0]
    assert early.table[3, 0] <= early.table[4, 0] <= early.table[2, 0]
    hour = page(view, interval="1h", start=FRAMES["1h"].floor(start), limit=1, now=closed + 1)
    assert not same(hour, page(interval="1h", start=FRAMES["1h"].floor(start), limit=1, now=closed))


@given(
    market=st.sampled_from(listings(12)),
    start=st.integers(28_000_000, 29_000_000).map(lambda minute: minute * MINUTE_MS),
    count=st.integers(0, 120),
    interval=st.sampled_from(["1m", "15m", "1d"]),
)
@settings(max_examples=60, deadline=None)
def test_both_ways_of_writing_a_page_give_the_same_text(
    market: SimulatedMarket, start: int, count: int, interval: str
) -> None:
    frame = FRAMES[interval]
    start = frame.floor(start)
    count = count if interval == "1m" else min(count, 40)
    bars = Truth(listings=(market,)).bars(market.id, interval, start, start + count * frame.ms)
    assert orjson.loads(page_json(bars, frame)) == page_rows(bars, frame)


def test_numbers_of_every_length_are_written_right() -> None:
    bars = TRUTH.bars("BTCUSDT", "1m", RUNNING, RUNNING + 40 * MINUTE_MS)
    for column in range(1, 10):
        bars.table[column] = [10 ** (place % 16) - (place % 3 == 0) for place in range(40)]
    bars.table[1] = 0
    assert page_json(bars, MINUTE) == orjson.dumps(page_rows(bars, MINUTE))


def test_a_row_has_the_twelve_columns_of_binance() -> None:
    bars = TRUTH.bars("BTCUSDT", "1m", RUNNING, RUNNING + 1)
    (row,) = page_rows(bars, MINUTE)
    assert len(row) == 12
    assert row[0] == RUNNING
    assert row[6] == RUNNING + 59_999
    assert isinstance(row[8], int)
    assert row[11] == "0"
    assert all(len(str(row[column]).split(".")[1]) == 8 for column in (1, 2, 3, 4, 5, 7, 9, 10))
    assert decimal(5, 0) == "5.00000000"
    assert decimal(5, 2) == "0.05000000"
