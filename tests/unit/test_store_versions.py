"""Revised bars: the last one known wins, and the older ones stay reachable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from collector.store import compaction, part, segment, snapshot
from tests.support.bars import BTC, at, bars, span

if TYPE_CHECKING:
    from collector.market.interval import Interval
    from collector.store.store import Store
    from tests.support.lakes import Lake

VERSIONS = "binance/BTC-USDT/versions/1m.parquet"


@pytest.fixture
def store(lake: Lake) -> Store:
    return lake.store()


@pytest.fixture
def _short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (segment, part, snapshot, compaction):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", 4)


def put(store: Store, prices: dict[int, float], covered: Interval, known_at: int) -> None:
    store.append_page(BTC, bars(prices), covered, fence=1, known_at=known_at)


def one_row(store: Store, slot: int, **how: Any) -> dict[str, Any]:
    row: dict[str, Any] = store.rows(BTC, at(slot), at(slot + 1), **how).to_pylist()[0]
    return row


@pytest.mark.usefixtures("_short_windows")
def test_ver_grows_only_when_values_change_and_older_ones_stay(store: Store, lake: Lake) -> None:
    for known_at, price in ((10, 1.0), (20, 1.0), (30, 2.0), (40, 1.0)):
        put(store, {0: price, 9: 5.0}, span(0, 10), known_at)
        store.compact(BTC)
    assert one_row(store, 0)["ver"] == 3
    assert one_row(store, 9)["ver"] == 1
    older = lake.table(VERSIONS)
    columns = ("ts", "ver", "o", "known_at", "seen_at")
    assert [tuple(row[name] for name in columns) for row in older.to_pylist()] == [
        (at(0), 1, 1.0, 10, 20),
        (at(0), 2, 2.0, 30, 30),
    ]
    for moment, price in ((10, 1.0), (29, 1.0), (30, 2.0), (39, 2.0), (40, 1.0)):
        assert one_row(store, 0, as_of=moment)["o"] == price
    assert store.rows(BTC, at(0), at(10), as_of=9).num_rows == 0


def test_a_bar_first_seen_later_was_missing_before(store: Store) -> None:
    put(store, {0: 1.0, 3: 4.0}, span(0, 4), 10)
    put(store, {1: 2.0}, span(0, 4), 20)
    for _ in range(2):
        then = store.rows(BTC, at(0), at(9), as_of=15)
        assert then["gap_reason"].to_pylist() == [None, "missing", "no_trade", None]
        assert then["c"].to_pylist() == [2, 2, 2, 5]
        store.compact(BTC)


def test_an_answer_that_arrives_after_newer_ones_were_merged_stays_old(store: Store) -> None:
    """A@10, A@50 were merged; a frozen writer then puts B@30 down. The last thing known is A."""
    put(store, {0: 1.0}, span(0, 1), 10)
    store.compact(BTC)
    put(store, {0: 1.0}, span(0, 1), 50)
    store.compact(BTC)
    put(store, {0: 2.0}, span(0, 1), 30)
    for _ in range(2):
        assert (one_row(store, 0)["o"], one_row(store, 0)["ver"]) == (1.0, 3)
        assert one_row(store, 0, as_of=30)["o"] == 2.0
        store.compact(BTC)
