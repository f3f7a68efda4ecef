"""Made-up bars: the same everywhere, valid, and longer ones exact sums of minutes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.durations import MINUTE_MS
from collector.simulated.bars import FRAMES, Bars
from collector.simulated.faults.history import NoTrade
from collector.simulated.listing import WELL_KNOWN, SimulatedMarket, listings
from collector.simulated.noise import levels, levels_directly, octave_keys
from collector.simulated.request import VenueError
from collector.simulated.series import SimulatedSeries
from collector.simulated.trades import trades_of
from collector.simulated.truth import Truth

NOON = 1_700_000_040_000
BTC = WELL_KNOWN[0]
LATER = SimulatedMarket(
    "NEW", "USDT", NOON + 90 * MINUTE_MS, 3.0, delisted_ms=NOON + 900 * MINUTE_MS
)

minutes_ms = st.integers(27_000_000, 31_000_000).map(lambda minute: minute * MINUTE_MS)
markets = st.sampled_from(listings(12))
seeds = st.integers(0, 2**32)


def rows(bars: Bars) -> list[list[int]]:
    table: list[list[int]] = bars.table.T.tolist()
    return table


@given(first=st.integers(1, 40_000_000), count=st.integers(1, 700), stream=seeds)
def test_the_short_cut_of_the_noise_changes_nothing(first: int, count: int, stream: int) -> None:
    keys = octave_keys(stream)
    minutes = np.arange(first, first + count, dtype=np.int64)
    assert (levels(first, count, keys) == levels_directly(minutes, keys)).all()


@given(market=markets, seed=seeds, start=minutes_ms, count=st.integers(1, 200), data=st.data())
@settings(max_examples=50)
def test_a_minute_is_the_same_in_whatever_stretch_it_is_computed(
    market: SimulatedMarket, seed: int, start: int, count: int, data: st.DataObject
) -> None:
    whole = rows(SimulatedSeries(market, seed).minutes(start, start + count * MINUTE_MS))
    if whole:
        place = data.draw(st.integers(0, len(whole) - 1))
        alone = SimulatedSeries(market, seed).minutes(whole[place][0], whole[place][0] + 1)
        assert rows(alone) == [whole[place]]


def test_the_bars_of_a_seed_never_change() -> None:
    # Recorded: stores and journals of other runs are compared with these.
    bars = Truth(seed=7).bars("BTC/USDT", "1m", NOON, NOON + 2 * MINUTE_MS)
    assert rows(bars) == RECORDED


def test_another_seed_gives_other_bars() -> None:
    ours, other = (
        Truth(seed=seed).bars("BTC/USDT", "1m", NOON, NOON + MINUTE_MS * 50) for seed in (7, 8)
    )
    assert rows(ours) != rows(other)


@given(market=markets, seed=seeds, start=minutes_ms)
@settings(max_examples=50)
def test_every_bar_is_a_possible_bar(market: SimulatedMarket, seed: int, start: int) -> None:
    table = SimulatedSeries(market, seed).minutes(start, start + 300 * MINUTE_MS).table
    _, opened, high, low, closed, volume, quote, trades, taker, taker_quote = table
    assert (low <= np.minimum(opened, closed)).all()
    assert (np.maximum(opened, closed) <= high).all()
    assert (low >= 1).all()
    assert (volume * low <= quote).all()
    assert (quote <= volume * high).all()
    assert (trades >= 4).all()
    assert (taker <= volume).all()
    assert (taker_quote <= quote).all()
    assert (opened[1:] == closed[:-1]).all()


@given(market=markets, seed=seeds, start=minutes_ms)
@settings(max_examples=25)
def test_the_trades_of_a_minute_make_its_bar(
    market: SimulatedMarket, seed: int, start: int
) -> None:
    series = SimulatedSeries(market, seed)
    for bar in series.minutes(start, start + 3 * MINUTE_MS).table.T:
        open_ms, opened, high, low, closed, volume, _, count, _, _ = bar.tolist()
        trades = trades_of(bar, series.trade_stream)
        assert len(trades) == count
        assert (trades.prices[0], trades.prices[-1]) == (opened, closed)
        assert (trades.prices.max(), trades.prices.min()) == (high, low)
        assert trades.sizes.sum() == volume
        assert (trades.sizes >= 1).all()
        assert trades.at_ms[0] == open_ms
        assert (np.diff(trades.at_ms) >= 0).all()
        assert trades.at_ms[-1] < open_ms + MINUTE_MS
        assert (np.diff(trades.ids) == 1).all()


@pytest.mark.parametrize("interval", ["3m", "5m", "15m", "1h", "4h", "1d", "3d", "1w"])
def test_longer_bars_are_exact_sums_of_minutes(interval: str) -> None:
    frame = FRAMES[interval]
    start, end = frame.floor(NOON), frame.floor(NOON) + 3 * frame.ms
    truth = Truth(no_trade=(NoTrade(ratio=0.4),))
    slow: dict[int, list[int]] = {}
    for bar in rows(truth.bars("BTC/USDT", "1m", start, end)):
        bucket = slow.setdefault(frame.floor(bar[0]), [frame.floor(bar[0]), *bar[1:5], *[0] * 5])
        bucket[2], bucket[3] = max(bucket[2], bar[2]), min(bucket[3], bar[3])
        bucket[4] = bar[4]
        bucket[5:] = [sum(pair) for pair in zip(bucket[5:], bar[5:], strict=True)]
    assert len(slow) == 3
    assert rows(truth.bars("BTC/USDT", interval, start, end)) == list(slow.values())


def test_years_of_daily_bars_are_the_same_as_day_by_day() -> None:
    truth, day = Truth(), FRAMES["1d"]
    start = day.floor(NOON)
    years = rows(truth.bars("ETH/USDT", "1d", start, start + 400 * day.ms))
    assert len(years) == 400
    assert years[233] == rows(truth.bars("ETH/USDT", "1d", years[233][0], years[233][0] + 1))[0]


def test_bars_exist_from_listing_to_delisting_only() -> None:
    truth = Truth(listings=(LATER,))
    bars = truth.bars("NEW/USDT", "1m", 0, NOON + 10_000 * MINUTE_MS)
    assert bars.open_ms[0] == LATER.listed_ms
    assert bars.open_ms[-1] + MINUTE_MS == LATER.delisted_ms
    assert len(bars) == 810
    hours = truth.bars("NEW/USDT", "1h", 0, NOON + 10_000 * MINUTE_MS)
    assert hours.open_ms[0] == FRAMES["1h"].floor(LATER.listed_ms)


def test_no_trade_minutes_are_absent_from_the_truth_of_their_market_alone() -> None:
    span = (NOON, NOON + 10 * MINUTE_MS)
    truth = Truth(no_trade=(NoTrade(symbol="BTC/USDT", spans=(span,)),))
    start, end = NOON - 5 * MINUTE_MS, NOON + 15 * MINUTE_MS
    assert len(truth.bars("BTCUSDT", "1m", start, end)) == 10
    assert len(truth.bars("ETHUSDT", "1m", start, end)) == 20


def test_columns_are_the_floats_that_the_decimal_texts_read_as() -> None:
    bars = Truth().bars("BTC/USDT", "1w", NOON - 5 * FRAMES["1w"].ms, NOON)
    columns = bars.columns()
    exact = [int(ticks) / 10**7 for ticks in bars.table[6]]
    assert bars.table[6].max() > 2**53
    assert columns["turnover"].tolist() == exact
    assert columns["open"].tolist() == [float(f"{int(ticks)}e-2") for ticks in bars.table[1]]
    assert bars.arrow().column_names == list(columns)


@pytest.mark.parametrize(("symbol", "interval"), [("NOPE/USDT", "1m"), ("BTC/USDT", "7m")])
def test_what_is_not_listed_is_refused(symbol: str, interval: str) -> None:
    with pytest.raises(VenueError, match="Invalid"):
        Truth().bars(symbol, interval, NOON, NOON + MINUTE_MS)


def test_ten_thousand_markets_have_names_of_their_own() -> None:
    many = listings(10_000, listed_ms=NOON)
    assert len({listing.id for listing in many}) == 10_000
    assert many[0].symbol == "BTC/USDT"
    assert many[5].symbol == "SIM00001/USDT"
    assert {listing.listed_ms for listing in many} == {NOON}


def test_a_listing_begins_on_a_minute() -> None:
    with pytest.raises(ValueError, match="not the start of a minute"):
        SimulatedMarket("ODD", "USDT", NOON + 1, 1.0)


RECORDED = [
    [
        1700000040000,
        6810683,
        6813146,
        6809675,
        6812947,
        947257,
        6452347148284,
        33,
        445515,
        3034675320180,
    ],
    [
        1700000100000,
        6812947,
        6815478,
        6807920,
        6809374,
        1014869,
        6912708137801,
        14,
        622462,
        4239855718198,
    ],
]
