"""Buckets in memory: trades in, candles out, and what a reorg leaves."""

from __future__ import annotations

import random

import pytest

from collector.history.engine import History, PendingChange
from collector.history.event import CanonicalTrade
from collector.history.refusal import SumOverflow
from collector.history.trade_columns import TradeColumns
from collector.history.uint256 import LIMIT, SCALE
from tests.support.history_trades import (
    MINUTE,
    OTHER,
    PAIR,
    Trades,
    at,
    read,
    recomputed,
    trade,
)


def filled(*trades: CanonicalTrade) -> History:
    history = History(60)
    for each in trades:
        history.append_trade(each)
    return history


def append_many(history: History, *trades: CanonicalTrade) -> None:
    change = PendingChange()
    history.prepare(change, TradeColumns.of(trades))
    history.commit(change)


def test_trades_of_one_bucket_make_its_prices_sums_and_count() -> None:
    history = filled(trade(0.1, 5, 10), trade(0.2, 9, 20), trade(0.3, 3, 30), trade(0.4, 6, 40))
    (candle,) = read(history)
    assert [candle.open, candle.high, candle.low, candle.close] == [
        price * SCALE for price in (5, 9, 3, 6)
    ]
    assert (candle.sum_base, candle.sum_quote, candle.trades) == (100, 50 + 180 + 90 + 240, 4)
    assert (candle.ts, candle.first_ts, candle.last_ts) == (at(0), at(0.1), at(0.4))


def test_the_next_bucket_opens_at_the_last_price_of_the_pair() -> None:
    history = filled(trade(0, 5), trade(0.5, 7), trade(3, 9), trade(3.5, 8))
    first, second = read(history)
    assert (first.open, first.close) == (5 * SCALE, 7 * SCALE)
    assert second.ts == at(3)
    assert (second.open, second.high, second.low) == (7 * SCALE, 9 * SCALE, 7 * SCALE)
    assert history.last_price(PAIR) == 8 * SCALE


def test_a_bucket_read_alone_still_opens_at_the_close_before_it() -> None:
    history = filled(trade(0, 5), trade(70 * 24 * 60, 9))
    (late,) = read(history, from_ms=at(1))
    assert late.open == 5 * SCALE


def test_a_late_trade_changes_its_own_bucket_and_the_next_open() -> None:
    history = filled(trade(0, 5), trade(1, 6))
    history.append_trade(trade(0.5, 4))
    first, second = read(history)
    assert (first.close, second.open, second.low) == (4 * SCALE, 4 * SCALE, 4 * SCALE)
    assert history.last_price(PAIR) == 6 * SCALE


def test_of_trades_of_one_moment_the_one_added_last_closes() -> None:
    history = filled(trade(0, 5), trade(0, 7), trade(0, 6))
    (candle,) = read(history)
    assert (candle.open, candle.close) == (5 * SCALE, 6 * SCALE)


def test_of_batches_with_trades_of_one_moment_the_last_one_closes() -> None:
    history = History(60)
    for price in (5, 7, 6):
        append_many(history, trade(0, price))
    (candle,) = read(history)
    assert (candle.open, candle.close) == (5 * SCALE, 6 * SCALE)


@pytest.mark.parametrize("gone", range(4), ids=["open", "high", "low", "close"])
def test_a_bucket_is_right_without_the_trade_that_made_a_price(gone: int) -> None:
    trades = [trade(0.1, 5), trade(0.2, 9), trade(0.3, 3), trade(0.4, 6)]
    history = filled(*trades, trade(1, 4))
    left = [*trades[:gone], *trades[gone + 1 :], trade(1, 4)]
    history.rebuild_bucket(Trades(left), PAIR, at(0))
    assert read(history) == recomputed(left)[PAIR]


def test_a_rebuild_reads_its_own_window_and_leaves_other_pairs_alone() -> None:
    history = filled(trade(0, 5), trade(0.5, 7, pair=OTHER), trade(1, 6))
    ledger = Trades([trade(0, 8), trade(0.5, 1, pair=OTHER)])
    history.rebuild_bucket(ledger, PAIR, at(0))
    assert ledger.windows == [(at(0), at(1))]
    assert [each.close for each in read(history)] == [8 * SCALE, 6 * SCALE]
    assert [each.close for each in read(history, OTHER)] == [7 * SCALE]


def test_an_empty_bucket_goes_and_its_successor_opens_at_the_one_before() -> None:
    history = filled(trade(0, 5), trade(1, 7), trade(2, 6))
    history.rebuild_bucket(Trades(), PAIR, at(1))
    assert [(each.ts, each.open) for each in read(history)] == [
        (at(0), 5 * SCALE),
        (at(2), 5 * SCALE),
    ]


def test_the_last_price_follows_the_newest_bucket_that_is_left() -> None:
    history = filled(trade(0, 5), trade(1, 7))
    history.rebuild_bucket(Trades(), PAIR, at(1))
    assert history.last_price(PAIR) == 5 * SCALE


def test_a_pair_without_buckets_keeps_its_last_price_which_opens_nothing() -> None:
    history = filled(trade(0, 5))
    history.rebuild_bucket(Trades(), PAIR, at(0))
    assert read(history) == []
    assert history.last_price(PAIR) == 5 * SCALE
    history.append_trade(trade(9, 8))
    assert [each.open for each in read(history)] == [8 * SCALE]


def test_a_sum_past_256_bits_is_refused_and_changes_nothing() -> None:
    huge = CanonicalTrade(PAIR, at(0), 1, LIMIT - 1, 1)
    one_more = CanonicalTrade(PAIR, at(0.5), 2, 1, 1)
    history = filled(huge)
    before = read(history)
    with pytest.raises(SumOverflow):
        history.append_trade(one_more)
    with pytest.raises(SumOverflow):
        append_many(history, trade(5, 1), one_more)
    assert read(history) == before
    with pytest.raises(SumOverflow):
        append_many(History(60), huge, one_more)


def some_trades(count: int, bits: int, seed: int) -> list[CanonicalTrade]:
    chance = random.Random(seed)
    numbers = lambda: chance.getrandbits(chance.randrange(1, bits))  # noqa: E731
    return [
        CanonicalTrade(
            chance.choice([PAIR, OTHER]),
            at(chance.choice([chance.random() * 30, 44_600 + chance.random() * 60])),
            numbers(),
            numbers(),
            numbers(),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("bits", [60, 120, 190, 250])
def test_bulk_and_single_appends_say_the_same(bits: int) -> None:
    trades = some_trades(900, bits, seed=bits)
    bulk, mixed = History(60), History(60)
    for first in range(0, 900, 300):
        batch = trades[first : first + 300]
        append_many(bulk, *batch)
        append_many(mixed, *batch[:100])
        for each in batch[100:]:
            mixed.append_trade(each)
    expected = recomputed(trades)
    for history in (bulk, mixed, filled(*trades)):
        for pair in (PAIR, OTHER):
            assert read(history, pair) == expected[pair]
            assert history.last_price(pair) == expected[pair][-1].close


def test_many_buckets_are_found_again_whatever_order_they_came_in() -> None:
    slots = list(range(5_000))
    random.Random(1).shuffle(slots)
    trades = [trade(slot, 1 + slot % 7) for slot in slots]
    history = History(60)
    append_many(history, *trades[:2_500])
    append_many(history, *trades[2_500:4_000])
    for each in trades[4_000:]:
        history.append_trade(each)
    assert read(history) == recomputed(trades)[PAIR]
    assert [each.ts for each in read(history, from_ms=at(4_000), to_ms=at(4_003))] == [
        at(4_000) + MINUTE * slot for slot in range(3)
    ]
