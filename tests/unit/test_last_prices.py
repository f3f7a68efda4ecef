"""The last price of each symbol, and what of it is new."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.exchanges.ticks import PriceTick
from collector.streams.last_prices import LastPrices, TickTotals


def tick(symbol: str = "A/B", bid: float = 1.0, ask: float = 2.0, at: float = 10.0) -> PriceTick:
    return PriceTick(symbol, bid, ask, at, at + 0.1)


def test_a_snapshot_has_exactly_the_six_keys_of_the_last_tick() -> None:
    book = LastPrices()
    book.take(tick("XAU/USD", 4209.0, 4209.5, at=1764866659.0), 0.0)
    book.take(tick("XAU/USD", 4209.62, 4210.02, at=1764866660.0), 0.0)
    (price,) = book.snapshot(1764866661.0)
    assert list(price.payload().items()) == [
        ("symbol", "XAU/USD"),
        ("bid", 4209.62),
        ("ask", 4210.02),
        ("mid", 4209.82),
        ("tick_ts", 1764866660.0),
        ("snap_ts", 1764866661.0),
    ]


def test_a_symbol_without_a_new_tick_is_not_in_the_next_snapshot() -> None:
    book = LastPrices()
    assert book.snapshot(1.0) == ()
    book.take(tick("A/B"), 0.0)
    book.take(tick("C/D"), 0.0)
    assert [price.symbol for price in book.snapshot(11.0)] == ["A/B", "C/D"]
    book.take(tick("C/D", at=11.0), 0.0)
    assert [price.symbol for price in book.snapshot(12.0)] == ["C/D"]
    assert book.snapshot(13.0) == ()
    assert book.snap_ts == 12.0  # An empty cycle is no snapshot.


def test_what_is_no_price_counts_apart_and_changes_nothing() -> None:
    book = LastPrices()
    book.take(tick(at=10.0), 1.0)
    for wrong in (
        tick(bid=0.0),
        tick(ask=-1.0),
        tick(bid=math.nan),
        tick(ask=math.inf),
        tick(at=9.9),
    ):
        book.take(wrong, 5.0)
    assert book.totals == TickTotals(received=6, errors=5)
    assert book.silence(7.0) == 6.0
    (price,) = book.snapshot(11.0)
    assert (price.bid, price.ask) == (1.0, 2.0)


@pytest.mark.parametrize("seconds", [0.001, 9.0, 11.0, 86_400.0])
def test_an_older_tick_never_replaces_a_newer_one(seconds: float) -> None:
    book = LastPrices()
    book.take(PriceTick("A/B", 1.0, 1.0, 100_000.0, 100_000.1), 0.0)
    book.take(PriceTick("A/B", 2.0, 2.0, 100_000.0 - seconds, 100_000.2), 0.0)
    (price,) = book.snapshot(100_001.0)
    assert (price.bid, price.tick_ts) == (1.0, 100_000.0)
    assert book.totals.errors == 1


def test_one_date_in_the_future_does_not_stop_a_price() -> None:
    book = LastPrices()
    book.take(PriceTick("A/B", 1.0, 1.0, 10_000.0, 99.0), 0.0)
    book.take(PriceTick("A/B", 1.5, 1.5, 100.0, 100.1), 0.0)
    (price,) = book.snapshot(101.0)
    assert (price.bid, price.tick_ts) == (1.5, 100.0)


def test_without_the_venues_time_the_order_of_arrival_counts() -> None:
    book = LastPrices()
    book.take(PriceTick("A/B", 1.0, 1.0, 5_000.0, 5_000.0), 0.0)
    book.take(PriceTick("A/B", 1.5, 1.5, 100.0, 100.0), 0.0)  # Our own clock was set back.
    (price,) = book.snapshot(101.0)
    assert (price.bid, price.tick_ts) == (1.5, 100.0)


def test_symbols_that_are_followed_no_longer_are_forgotten() -> None:
    book = LastPrices()
    for symbol in ("A", "B", "C"):
        book.take(tick(symbol), 0.0)
    book.follow(["B", "D"], 0.0)
    assert [price.symbol for price in book.snapshot(11.0)] == ["B"]
    assert (book.symbols, list(book.symbols_state(11.0, most=9))) == (1, ["B"])
    assert book.totals == TickTotals(received=3, snapped=1, superseded=2)


def test_silence_is_unknown_before_the_first_tick() -> None:
    book = LastPrices()
    assert book.silence(5.0) is None
    book.take(tick(), 5.0)
    assert book.silence(8.5) == 3.5


def test_a_heartbeat_shows_the_oldest_symbols_when_there_are_many() -> None:
    book = LastPrices()
    for number in range(5):
        book.take(tick(f"S{number}", at=10.0 + number), 0.0)
    shown = book.symbols_state(20.0, most=2)
    assert list(shown) == ["S0", "S1"]
    assert shown["S0"] == {"bid": 1.0, "ask": 2.0, "mid": 1.5, "tick_age": 9.9}


@given(
    st.lists(
        st.one_of(st.just("snap"), st.tuples(st.sampled_from("abc"), st.floats(-1, 3))),
        max_size=60,
    )
)
def test_every_tick_is_counted_in_exactly_one_place(steps: list[object]) -> None:
    book = LastPrices()
    for number, step in enumerate(steps):
        if isinstance(step, tuple):
            book.take(tick(step[0], bid=step[1], at=float(number + 1)), 0.0)
        else:
            book.snapshot(float(number + 1))
    totals = book.totals
    assert totals.received == totals.snapped + totals.superseded + totals.errors + book.waiting
