"""Whatever comes in whatever order, and wherever the writer dies: the surviving trades decide.

The model keeps surviving trades in a list and works everything out from them again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.errors import DataInvalid
from collector.history import batches, ledger_files, month, segment, segment_shelf, writer
from collector.history.answers import ohlcv
from collector.history.event import Event, Input, Op
from collector.history.policy import CrossNet
from collector.history.reader import HistoryReader
from collector.history.uint256 import LIMIT, SCALE
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.support.examples import examples
from tests.support.history_trades import (
    CROSS,
    MINUTE,
    OTHER,
    PAIR,
    Model,
    Numbering,
    at,
    read,
    recomputed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.history.pair import Pair
    from collector.store.port import StorageFault

PAIRS = (PAIR, OTHER, CROSS)


@pytest.fixture(autouse=True, scope="module")
def _small_and_fast() -> Iterator[None]:
    """Small files, so that a handful of events is split, merged, saved and cut into row groups."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _handle: None)
        patch.setattr(ledger_files, "FAN", 2)
        patch.setattr(ledger_files, "LONGEST", 24)
        patch.setattr(segment, "ROWS_PER_GROUP", 2)
        patch.setattr(segment_shelf, "SMALL", 3)
        patch.setattr(month, "PIECE", 2)
        patch.setattr(batches, "LARGEST_BATCH", 5)
        patch.setattr(writer, "LONGEST_TAIL", 7)
        yield


class Killed(BaseException):
    """Not an Exception, so that nothing tidies up on its way: as after kill -9."""


class Death:
    """Ends the process at the n-th fault point it passes."""

    def __init__(self, after: int | None) -> None:
        self.after = after

    def __call__(self, point: StorageFault, path: str) -> None:
        if self.after is not None:
            self.after -= 1
            if self.after < 0:
                self.after = None
                note(f"died {point}")
                raise Killed


amounts = st.one_of(
    st.integers(0, 5),
    st.integers(LIMIT // 3, LIMIT - 1),
    st.sampled_from([1 << 64, (1 << 128) - 1, LIMIT - 1]),
)
prices = st.one_of(
    st.sampled_from([1, SCALE // 2, SCALE, 3 * SCALE, 10**36 + 1]),
    st.integers(1, LIMIT - 1),
)


@st.composite
def inputs(draw: st.DrawFn) -> Input:
    pair: Pair = draw(st.sampled_from(PAIRS))
    sell, buy = draw(st.permutations([pair.base, pair.quote]))
    value = draw(amounts)
    return Input(sell, buy, draw(prices), value, 0, draw(st.sampled_from([1, 1, 1, 0])))


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Few hashes and few moments, so that they meet: some days in two months."""
    tx = draw(st.sampled_from("abcdef"))
    minute = draw(st.sampled_from([0, 0.25, 0.5, 1, 2, 2.5, 44_640, 44_641]))
    op = draw(st.sampled_from([Op.ADD, Op.ADD, Op.DELETE]))
    return Event(op, tx, at(minute), tuple(draw(st.lists(inputs(), min_size=1, max_size=3))))


steps = st.one_of(
    st.tuples(st.just("apply"), st.lists(events(), max_size=6)),
    st.tuples(st.just("apply"), st.lists(events(), min_size=1, max_size=3)),
    st.tuples(st.just("again"), st.just([])),
    st.tuples(st.just("restart"), st.just([])),
    st.tuples(st.just("save"), st.just([])),
)
deaths = st.integers(-12, 24).map(lambda n: n if n >= 0 else None)


def same(history_writer: HistoryWriter, model: Model) -> None:
    expected = recomputed(model.standing.values())
    for pair in PAIRS:
        assert read(history_writer.history, pair) == expected.get(pair, [])
        assert history_writer.history.last_price(pair) == model.last_prices.get(pair)


def answers_fit(reader: HistoryReader, model: Model, from_ms: int, to_ms: int) -> None:
    """Candles, and the exact trades of a window that cuts through buckets."""
    expected = recomputed(model.standing.values()).get(reader.pair, [])
    answer = reader.market_rate("ohlcv")
    assert answer["items"] == [ohlcv(each) for each in expected]
    inside = [
        each
        for each in sorted(model.standing.values(), key=lambda each: each.ts)
        if each.pair == reader.pair and from_ms <= each.ts < to_ms
    ]
    volume = reader.volume(from_ms, to_ms)
    assert volume["trades"] == len(inside)
    assert int(volume["sum_base"]) == sum(each.base for each in inside)
    assert int(volume["sum_quote"]) == sum(each.quote for each in inside)
    spot = reader.market_rate("spot", from_ms, to_ms)
    assert spot["price"] == (str(inside[-1].price) if inside else None)


@settings(max_examples=examples(50), deadline=None)
@given(
    st.lists(st.tuples(steps, deaths), max_size=8),
    st.sampled_from([1, 30, 120, 7 * 86_400]),
    deaths,
)
def test_any_history_is_what_its_surviving_trades_make(
    done: list[tuple[tuple[str, list[Event]], int | None]], length: int, last_death: int | None
) -> None:
    model, number, sent = Model(MINUTE), Numbering(), list[tuple[int, Event]]()
    with tempfile.TemporaryDirectory() as folder:

        def opened(death: Death | None = None, bucket_sec: int = 60) -> HistoryWriter:
            disk = LocalDisk(folder, death or Death(None))
            return HistoryWriter(disk, "net", bucket_sec=bucket_sec, cross_net=CrossNet.WARN)

        history_writer = opened()
        readers = [
            HistoryReader("net", pair.base, pair.quote, folder, cache=cache)
            for cache in (True, False)
            for pair in PAIRS
        ]
        for (what, given_events), after in done:
            fresh = number(*given_events)
            sent += fresh
            assert len(fresh) == sum([model.apply(each) for each in given_events])
            death = Death(after)
            if after is not None or what == "restart":
                history_writer = opened(death)
            try:
                _do(history_writer, what, fresh, sent)
            except Killed:
                history_writer = opened()
                _do(history_writer, what, fresh, sent)
            death.after = None
            same(history_writer, model)
            assert history_writer.applied_through == len(sent)
            answers_fit(readers[0], model, at(0.25), at(2.4))
        same(opened(), model)
        for reader in readers:
            answers_fit(reader, model, at(0.25), at(2.4))
        try:
            _rebucketed(opened(Death(last_death), length))
        except Killed:
            _rebucketed(opened(bucket_sec=length))
        same_length(opened(bucket_sec=length), model, length)


def _rebucketed(history_writer: HistoryWriter) -> None:
    with contextlib.suppress(DataInvalid):
        assert not all(history_writer.rebucket() for _ in range(9)), "there are two months"


def same_length(history_writer: HistoryWriter, model: Model, length: int) -> None:
    """Of another length, unless a sum of that many trades does not fit into 256 bits."""
    expected = recomputed(model.standing.values(), length * 1000)
    sums = [max(each.sum_base, each.sum_quote) for found in expected.values() for each in found]
    fits = all(each < LIMIT for each in sums)
    assert history_writer.history.bucket_ms == (length if fits else 60) * 1000
    for pair in PAIRS if fits else ():
        assert read(history_writer.history, pair) == expected.get(pair, [])
        assert history_writer.history.last_price(pair) == model.last_prices.get(pair)


def _do(
    history_writer: HistoryWriter,
    what: str,
    fresh: list[tuple[int, Event]],
    sent: list[tuple[int, Event]],
) -> None:
    if what == "save":
        history_writer.save()
    else:
        history_writer.apply(sent if what == "again" else fresh)
