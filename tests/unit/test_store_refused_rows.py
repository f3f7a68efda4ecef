"""Refused rows can be listed, page after page."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest

from collector.market.answer import Rejected
from collector.market.series import Series
from collector.store import quarantine as quarantines
from collector.store.refused_rows import Place, Which, refused_rows
from tests.support.bars import BTC, ETH, at

if TYPE_CHECKING:
    from collector.store.store import Store
    from tests.support.lakes import Lake

HOURS = Series.of("bybit", "BTC/USDT", "1h")


def refuse(store: Store, series: Series, *slots: int) -> None:
    rows = [Rejected("ohlc", at(slot), (at(slot), 1.0, 0.5)) for slot in slots]
    store.quarantine(series, rows, fence=3, known_at=7)


def filled(lake: Lake) -> Store:
    store = lake.store()
    refuse(store, BTC, 1, 2, 3)
    refuse(store, BTC, 4)
    refuse(store, ETH, 5)
    refuse(store, Series.of("binance", "BTC/USDT", "1h"), 60)
    refuse(store, HOURS, 120)
    return store


def test_nonsense_that_differs_every_time_fills_no_disk(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantines, "MOST_FILES", 3)
    monkeypatch.setattr(quarantines, "MOST_ROWS", 2)
    store = lake.store()
    for first in range(0, 50, 5):
        refuse(store, BTC, *range(first, first + 5))
    refuse(store, BTC, *range(5))
    refuse(store, HOURS, 120)
    assert times(store, Which("binance")) == [at(n) for n in (0, 1, 5, 6, 10, 11)]
    assert times(store, Which("bybit")) == [at(120)]


def test_a_huge_row_is_kept_by_its_beginning(lake: Lake) -> None:
    store = lake.store()
    row = Rejected("ohlc", None, ("x" * 2**20, 1.0))
    store.quarantine(BTC, [row], fence=3, known_at=7)
    [kept] = refused_rows(store.storage, Which())
    assert kept.row == ['["' + "x" * (quarantines.LONGEST_ROW - 2)]


def times(store: Store, which: Which) -> list[int]:
    return sorted(each.ts or 0 for each in refused_rows(store.storage, which))


def test_rows_are_picked_by_exchange_symbol_and_timeframe(lake: Lake) -> None:
    store = filled(lake)
    assert times(store, Which()) == [at(n) for n in (1, 2, 3, 4, 5, 60, 120)]
    assert times(store, Which("binance")) == [at(n) for n in (1, 2, 3, 4, 5, 60)]
    assert times(store, Which(None, "BTC/USDT", "1h")) == [at(60), at(120)]
    assert times(store, Which("binance", "BTC/USDT", "1m")) == [at(n) for n in (1, 2, 3, 4)]
    assert times(store, Which("kraken")) == times(store, Which("binance", "NO/SUCH")) == []
    [eth] = refused_rows(store.storage, Which("binance", "ETH/USDT"))
    assert eth.facts() == {
        "exchange_id": "binance",
        "symbol": "ETH/USDT",
        "timeframe": "1m",
        "ts": at(5),
        "reason": "ohlc",
        "code": "E_SCHEMA",
        "row": [at(5), 1.0, 0.5],
        "known_at": 7,
        "fence": 3,
    }


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_list_goes_on_where_it_ended_whatever_came_since(lake: Lake, size: int) -> None:
    store = filled(lake)
    whole = [each.place for each in refused_rows(store.storage, Which())]
    assert whole == sorted(whole)
    found: list[Place] = []
    after: Place | None = None
    while page := list(islice(refused_rows(store.storage, Which(), after), size)):
        found += [each.place for each in page]
        after = Place.parse(str(found[-1]))
    assert found == whole
    refuse(store, HOURS, 180)
    later = [each.place for each in refused_rows(store.storage, Which(), whole[2])]
    assert [place for place in later if place in whole] == whole[3:]
    assert len(later) == len(whole) - 2


def test_a_damaged_file_hides_nothing_but_itself(lake: Lake) -> None:
    store = filled(lake)
    [path] = [path for path in lake.everything() if "ETH-USDT/quarantine" in path]
    lake.write(path, b"not parquet")
    lake.write("binance/notes/quarantine/x.parquet", b"not ours")
    assert times(store, Which()) == [at(n) for n in (1, 2, 3, 4, 60, 120)]


@pytest.mark.parametrize("text", ["", "binance", "binance|A|b|x", "../x|A|b|0", "a|b|c|0|e"])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no cursor of a list"):
        Place.parse(text)
