"""Pages and groups: what is in a part, and what the files alone prove."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest

from collector.market.answer import Rejected
from collector.market.candles import CandleBatch
from collector.market.series import Series
from collector.metrics import BARS_WRITTEN
from collector.store.coverage import Covered, SeriesCursor
from collector.store.page import Page
from collector.store.refused_rows import Which, refused_rows
from collector.store.store import Store
from tests.support.bars import BTC, ETH, at, bars, flat, span

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.interval import Interval
    from tests.support.lakes import Lake


def page(series: Series, first: int, count: int, price: float = 5.0, known_at: int = 1) -> Page:
    batch = flat(first, count, price)
    return Page.of(series, batch, span(first, first + count), fence=3, known_at=known_at)


def footer(lake: Lake, path: str) -> dict[str, object]:
    told: dict[str, object] = orjson.loads(lake.metadata(path).metadata[b"part"])
    return told


def test_a_page_is_one_uniquely_named_file(lake: Lake) -> None:
    store = lake.store()
    paths = [
        store.append_page(BTC, flat(0, 2), span(0, 5), fence=7, known_at=900) for _ in range(2)
    ]
    assert paths[0] != paths[1]
    for path in paths:
        assert path is not None
        name = rf"binance/BTC-USDT/parts/1m/{at(0)}-{at(5)}-7-{store.writer}[0-9a-f]+\.parquet"
        assert re.fullmatch(name, path)


def test_a_page_tells_what_it_proves(lake: Lake) -> None:
    store = lake.store()
    covered = [span(0, 2), span(3, 5)]
    path = store.append_page(BTC, bars({1: 5.0, 3: 6.0}), covered, fence=7, known_at=900)
    assert path is not None
    assert footer(lake, path) == {
        "format": 1,
        "exchange": "binance",
        "writer": store.writer,
        "pages": {
            "1m": {
                "BTC/USDT": [
                    [0, 2, at(1), at(3), 900, 7, [[at(0), at(2), 1], [at(3), at(5), 1]]],
                ]
            }
        },
    }
    table = lake.table(path)
    assert table["ts"].to_pylist() == [at(1), at(3)]
    assert table["known_at"].to_pylist() == table["seen_at"].to_pylist() == [900, 900]
    assert table["source"].to_pylist() == ["binance", "binance"]


def test_an_empty_answer_is_kept_and_one_that_settles_nothing_is_not(lake: Lake) -> None:
    store = lake.store()
    assert store.append_page(BTC, CandleBatch.empty(), span(0, 9), fence=1, known_at=1)
    assert store.append_page(BTC, CandleBatch.empty(), [], fence=1, known_at=1) is None
    assert store.coverage(BTC) == (Covered(at(0), at(9), 0),)
    assert store.cursor(BTC) == SeriesCursor(at(0), at(9), at(9), None)
    assert store.rows(BTC, at(0), at(9)).num_rows == 0


@pytest.mark.parametrize(
    ("batch", "covered", "match"),
    [
        (flat(0, 3), span(0, 2), "covers"),
        (CandleBatch.concat([flat(1, 1), flat(0, 1)]), span(0, 2), "ascend"),
        (CandleBatch.concat([flat(0, 1), flat(0, 1)]), span(0, 2), "ascend"),
        (CandleBatch.of([(at(0) + 1, 1, 1, 1, 1, 1)]), span(0, 2), "grid"),
    ],
)
def test_what_no_answer_can_have_been_is_refused(
    lake: Lake, batch: CandleBatch, covered: Interval, match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        lake.store().append_page(BTC, batch, covered, fence=1, known_at=1)


def test_a_group_part_holds_many_series_sorted_with_one_write(lake: Lake) -> None:
    store = lake.store()
    pages = [page(ETH, 4, 2), page(BTC, 0, 1), page(BTC, 1, 1, known_at=2)]
    path = store.append_group(pages)
    assert path is not None
    assert re.fullmatch(rf"binance/parts/{at(0)}-{at(6)}-2-[0-9a-f]+\.parquet", path)
    assert lake.everything() == [path]
    table = lake.table(path)
    symbols = ["BTC/USDT", "BTC/USDT", "ETH/USDT", "ETH/USDT"]
    assert table["symbol"].to_pylist() == symbols
    assert store.rows(BTC, at(0), at(9))["ts"].to_pylist() == [at(0), at(1)]
    assert store.rows(ETH, at(0), at(9))["ts"].to_pylist() == [at(4), at(5)]
    assert store.coverage(ETH) == (Covered(at(4), at(6), 2),)


def test_a_group_belongs_to_one_exchange(lake: Lake) -> None:
    other = Series.of("bybit", "BTC/USDT", "1m")
    with pytest.raises(ValueError, match="one exchange"):
        lake.store().append_group([page(BTC, 0, 1), page(other, 0, 1)])
    assert lake.store().append_group([]) is None


def test_timeframes_of_one_symbol_do_not_mix(lake: Lake) -> None:
    store = lake.store()
    five = Series.of("binance", "BTC/USDT", "5m")
    store.append_group(
        [page(BTC, 0, 1), Page.of(five, flat(0, 1), span(0, 5), fence=1, known_at=1)]
    )
    assert store.coverage(five) == (Covered(at(0), at(5), 1),)
    assert store.coverage(BTC) == (Covered(at(0), at(1), 1),)


def test_of_two_answers_the_later_known_wins_however_they_are_written(lake: Lake) -> None:
    store = lake.store()
    store.append_group([page(BTC, 0, 1, 20.0, known_at=9)])
    store.append_page(BTC, flat(0, 1, 10.0), span(0, 1), fence=99, known_at=8)
    row = store.rows(BTC, at(0), at(1))
    assert (row["o"][0].as_py(), row["ver"][0].as_py()) == (20.0, 2)


def test_answers_of_one_millisecond_keep_the_order_they_were_appended_in(lake: Lake) -> None:
    store = lake.store()
    for price in (30.0, 20.0, 10.0):
        store.append_page(BTC, flat(0, 1, price), span(0, 1), fence=1, known_at=50)
    assert store.rows(BTC, at(0), at(1))["o"].to_pylist() == [10.0]
    store.compact(BTC)
    store.append_group([page(BTC, 0, 1, 5.0, known_at=50)])
    assert store.rows(BTC, at(0), at(1))["o"].to_pylist() == [5.0]
    store.compact(BTC)
    row = store.rows(BTC, at(0), at(1), columns=["ts", "o", "ver", "is_gap", "known_at"])
    assert row.to_pylist()[0]["o"] == 5.0
    assert row.to_pylist()[0]["ver"] == 4


def test_two_writers_of_one_millisecond_agree_on_the_bar(lake: Lake) -> None:
    for prices in ((10.0, 30.0), (30.0, 10.0)):
        place = lake.beside(str(prices[0]))
        for price in prices:
            place.store().append_page(BTC, flat(0, 1, price), span(0, 1), fence=1, known_at=50)
        assert place.store().rows(BTC, at(0), at(1))["o"].to_pylist() == [30.0]


def test_the_ledger_joins_pages_and_counts_every_bar_once(lake: Lake) -> None:
    store = lake.store()
    store.append_page(BTC, flat(0, 5), span(0, 5), fence=1, known_at=1)
    store.append_page(BTC, bars({3: 9.0, 6: 9.0}), span(3, 8), fence=1, known_at=2)
    store.append_group([page(BTC, 20, 1)])
    expected = (Covered(at(0), at(8), 6), Covered(at(20), at(21), 1))
    assert store.coverage(BTC) == expected
    assert store.cursor(BTC) == SeriesCursor(at(0), at(8), at(21), at(20))
    store.compact(BTC)
    assert lake.store().coverage(BTC) == expected
    assert lake.store().cursor(BTC) == SeriesCursor(at(0), at(8), at(21), at(20))
    store.append_page(BTC, bars({6: 9.0, 9: 9.0}), span(6, 10), fence=1, known_at=3)
    assert store.coverage(BTC)[0] == Covered(at(0), at(10), 7)


def test_nothing_is_known_about_a_series_nobody_asked_for(lake: Lake) -> None:
    store = lake.beside("not").beside("there").store()
    assert store.coverage(BTC) == ()
    assert store.cursor(BTC) is None
    assert store.span(BTC) is None
    assert not store.holds(BTC)
    assert store.series() == ()
    assert store.compact(BTC) is None
    assert store.sweep("binance") == ()
    assert lake.storage().folders("") == []


def test_every_series_is_listed_wherever_its_bars_are(lake: Lake) -> None:
    store = lake.store()
    sealed, paged = Series.of("bybit", "a/B:C", "1h"), replace(BTC, symbol="XRP/USDT")
    store.append_page(sealed, CandleBatch.empty(), span(0, 60), fence=1, known_at=1)
    store.compact(sealed)
    store.append_page(paged, flat(0, 1), span(0, 1), fence=1, known_at=1)
    store.append_group([page(BTC, 0, 1)])
    lake.write("lost+found/x", b"")
    lake.write("binance/notes/x", b"")
    assert store.series() == (BTC, paged, sealed)
    assert store.series("bybit") == (sealed,)
    assert store.holds(BTC)
    assert not store.holds(ETH)


def test_rejected_rows_are_kept_once_with_their_reasons(lake: Lake) -> None:
    store = lake.store()
    rejected = [
        Rejected("ohlc", at(1), (at(1), 1.0, float("nan"), None, "x", 10**30, {"a": object()})),
        Rejected("no_time", None, ("\ud800",)),
    ]
    for known_at in (5, 6):
        store.append_page(
            BTC, flat(0, 1), [span(0, 1)], fence=4, known_at=known_at, rejected=rejected
        )
    kept = list(refused_rows(store.storage, Which("binance", "BTC/USDT", "1m")))
    assert [(row.reason, row.ts, row.code) for row in kept] == [
        ("ohlc", at(1), "E_SCHEMA"),
        ("no_time", None, "E_SCHEMA"),
    ]
    assert kept[0].row[:4] == [at(1), 1.0, "nan", None]
    assert kept[0].known_at == 5
    assert store.quarantine(BTC, [], fence=1, known_at=1) is None


def test_durable_bars_are_counted(tmp_path: Path) -> None:
    series = Series.of("counted", "BTC/USDT", "1m")
    store = Store(tmp_path)
    store.append_page(series, flat(0, 3), span(0, 3), fence=1, known_at=1)
    store.append_group([page(series, 3, 2)])
    assert BARS_WRITTEN.labels("counted", "1m")._value.get() == 5
