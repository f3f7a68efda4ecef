"""A series whose market is gone: nothing is lost, and its calendar ends with its last bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.market.candles import CandleBatch
from collector.store.copies import Copies
from collector.store.page import Page
from tests.support.bars import BTC, ETH, at, bars, span

if TYPE_CHECKING:
    from collector.store.store import Store
    from tests.support.lakes import Lake


@pytest.fixture
def store(lake: Lake) -> Store:
    return lake.store(copies=Copies(tail_days=1))


def put(store: Store, prices: dict[int, float], first: int, end: int, known_at: int = 1) -> None:
    store.append_page(BTC, bars(prices), span(first, end), fence=1, known_at=known_at)


def reasons(store: Store, first: int, end: int) -> list[str | None]:
    found: list[str | None] = store.rows(BTC, at(first), at(end)).column("gap_reason").to_pylist()
    return found


def test_what_was_asked_for_behind_the_last_bar_is_cut_off(store: Store, lake: Lake) -> None:
    put(store, {0: 1.0, 2: 3.0}, 0, 10)
    put(store, {}, 12, 20)
    store.freeze(BTC)
    assert store.span(BTC) == span(0, 3)
    assert store.covered(BTC) == (span(0, 3),)
    assert reasons(store, 0, 30) == [None, "no_trade", None]
    assert lake.table("binance/BTC-USDT/1m.parquet").num_rows == 3
    assert lake.table("binance/BTC-USDT/tail/1m.tail.parquet").num_rows == 3


def test_a_sealed_file_is_cut_too_and_only_once(store: Store) -> None:
    put(store, {0: 1.0, 2: 3.0}, 0, 10)
    store.compact(BTC)
    assert store.span(BTC) == span(0, 10)
    assert store.freeze(BTC) is not None
    assert store.span(BTC) == span(0, 3)
    assert store.freeze(BTC) is None
    assert store.compact(BTC) is None


def test_answers_in_a_group_with_others_are_cut_for_this_series_alone(store: Store) -> None:
    pages = [
        Page.of(series, bars({0: 1.0, 4: 2.0}), span(0, 9), fence=1, known_at=1)
        for series in (BTC, ETH)
    ]
    store.append_group(pages)
    store.freeze(BTC)
    assert store.span(BTC) == span(0, 5)
    assert store.span(ETH) == span(0, 9)


def test_older_versions_survive(store: Store) -> None:
    put(store, {0: 1.0}, 0, 5, known_at=10)
    put(store, {0: 2.0}, 0, 5, known_at=20)
    store.compact(BTC)
    store.freeze(BTC)
    assert store.rows(BTC, at(0), at(5)).column("o").to_pylist() == [2.0]
    assert store.rows(BTC, at(0), at(5), as_of=10).column("o").to_pylist() == [1.0]


def test_a_series_without_a_bar_is_left_as_it_is(store: Store) -> None:
    assert store.freeze(BTC) is None
    put(store, {}, 0, 5)
    store.freeze(BTC)
    assert store.covered(BTC) == (span(0, 5),)


def test_a_new_epoch_goes_on_behind_the_cut(store: Store) -> None:
    put(store, {0: 1.0, 2: 3.0}, 0, 10)
    store.freeze(BTC)
    store.append_page(BTC, CandleBatch.empty(), span(3, 20), fence=1, known_at=2)
    put(store, {20: 5.0}, 20, 21, known_at=3)
    assert reasons(store, 0, 21) == [None, "no_trade", None, *["no_trade"] * 17, None]
