"""Pages whose numbers are read in one go are what ccxt makes of every row, or are left to ccxt."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import ccxt
import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.unread import Places, Unread, learn, picked, unread
from collector.exchanges.ccxt.visit import Errand, Visit
from collector.exchanges.port import Call

if TYPE_CHECKING:
    from collector.market.bar_rows import BarRows

RNG = random.Random(5)


def parser(exchange_id: str, turnover: int | None) -> Any:
    exchange = getattr(ccxt, exchange_id)()

    def parse(row: Any) -> Any:
        extra = None if turnover is None else exchange.safe_number(row, turnover)
        return [*exchange.parse_ohlcv(row, None), extra]

    return parse


def binance_row(at: int) -> list[Any]:
    price = [f"{RNG.uniform(1, 90_000):.2f}" for _ in range(4)]
    return [1_700_000_000_000 + at * 60_000, *price, "12.50", 1, "99.5", 3, "1", "2", "0"]


def bybit_row(at: int) -> list[Any]:
    return [str(1_700_000_000_000 + at * 60_000), "5", "7", "4", "6.5", "1.25", "8.0"]


def kucoin_row(at: int) -> list[Any]:
    # Seconds, and open, close, high, low.
    return [str(1_700_000_000 + at * 60), "5", "6.5", "7", "4", "1.25", "8.0"]


VENUES = {
    "binance": (binance_row, 7),
    "bybit": (bybit_row, 6),
    "kucoin": (kucoin_row, None),
    "kraken": (lambda at: [1_700_000_000 + at * 60, "5", "7", "4", "6", "5.5", "1.2", 9], None),
    "bitfinex": (lambda at: [1_700_000_000_000 + at * 60_000, 5, 6.5, 7, 4, 1.2], None),
}


def read(rows: Any, parse: Any, path: tuple[str, ...] = (), **kwargs: Any) -> BarRows | None:
    answer = rows
    for key in reversed(path):
        answer = {"code": 0, key: answer}
    _, page = unread(json.dumps(answer, **kwargs), path, json.loads)
    columns = learn(rows[0], parse)
    assert columns is not None
    return None if page is None else picked(page, columns, parse)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("path", [(), ("result", "list")])
@pytest.mark.parametrize("exchange_id", VENUES)
def test_a_page_is_what_ccxt_makes_of_each_row(
    exchange_id: str, path: tuple[str, ...], separators: tuple[str, str]
) -> None:
    make, turnover = VENUES[exchange_id]
    parse = parser(exchange_id, turnover)
    rows = [make(at) for at in range(500)]
    bars = read(rows, parse, path, separators=separators)
    assert bars is not None
    assert bars == [tuple(parse(row)) for row in rows]
    assert read(rows[::-1], parse, path) == bars, "oldest first, whatever the order"


@pytest.mark.parametrize("cell", [None, "abc", "", [], {}, True, "NaN", "inf", "1,2", "1e999"])
@pytest.mark.parametrize("place", [0, 1, 5, 7])
@pytest.mark.parametrize("row", [0, 10, 19])
def test_an_odd_cell_leaves_the_page_to_ccxt(cell: Any, place: int, row: int) -> None:
    parse = parser("binance", 7)
    rows = [binance_row(at) for at in range(20)]
    columns = learn(rows[1], parse)
    assert columns is not None
    rows[row][place] = cell
    _, page = unread(json.dumps(rows), (), json.loads)
    assert page is None or picked(page, columns, parse) is None


def test_a_page_in_which_every_row_is_odd_in_the_same_way_is_left_to_ccxt() -> None:
    for cell in ("1,2", True, None, "", [1], {"a": 1}, "x"):
        rows = [[1_700_000_000_000, cell, "5", "6", "7", "8"]] * 5
        assert unread(json.dumps(rows), (), json.loads) == (None, None)


def test_rows_of_other_lengths_are_left_to_ccxt() -> None:
    rows = [binance_row(at) for at in range(5)]
    assert unread(json.dumps([*rows, rows[0][:6]]), (), json.loads) == (None, None)
    # As many cells as five rows have, one of them in the wrong row.
    shifted = [*rows[:2], rows[2][:-1], [*rows[3], "0"], rows[4]]
    assert unread(json.dumps(shifted), (), json.loads) == (None, None)


@pytest.mark.parametrize(
    "cell",
    [
        *("5", "5.0", "1e-8", "1E3", "-0.0", "0.1", "123456789.123456789", "18446744073709551616"),
        *("1,2", "[1", '"5"', "1_000", "0x10", " 7", "007", ".5", "5.", "+5", "true", "null"),
    ],
)
def test_a_cell_is_read_as_ccxt_reads_it_or_left_to_ccxt(cell: str) -> None:
    parse = parser("binance", 7)
    rows = [binance_row(at) for at in range(3)]
    rows[1][4] = cell
    bars = read(rows, parse)
    assert bars is None or bars == [tuple(parse(row)) for row in rows]


def test_a_comma_in_one_cell_and_nothing_in_another_do_not_make_two_numbers() -> None:
    parse = parser("binance", 7)
    rows = [binance_row(at) for at in range(4)]
    rows[1][4], rows[2][4] = "1,2", ""
    assert read(rows, parse) is None


def test_rows_that_are_no_lists_are_left_to_ccxt() -> None:
    parse = parser("binance", 7)
    assert learn({"t": 1}, parse) is None
    assert learn([], parse) is None


def test_an_answer_whose_rows_stand_elsewhere_is_left_to_ccxt() -> None:
    rows = [binance_row(at) for at in range(5)]
    answer = {"error": rows, "result": {"list": []}}
    text = json.dumps(answer)
    found, page = unread(text, ("error",), json.loads)
    assert found is not None
    assert found["error"] is page
    assert found["result"] == {"list": []}
    assert unread(text, ("data",), json.loads) == (None, None)
    assert unread("[]", (), json.loads) == (None, None)


def visited(json_answer: Any, raw_rows: Any, parsed: Any, page: Unread | None = None) -> Visit:
    async def never() -> Any:
        raise AssertionError

    visit = Visit()
    visit.last = Errand(Call("binance", "klines"), never)
    visit.last.json = json_answer
    visit.raw_rows, visit.parsed, visit.unread = raw_rows, parsed, page
    return visit


def test_the_place_of_the_rows_is_learnt_from_a_page_that_ccxt_hands_on() -> None:
    places, rows, made = Places(), [[1]], [(1,)]
    assert places.of("klines") is None
    places.seen(visited({"result": {"list": rows}}, rows, made), made)
    assert places.of("klines") == ("result", "list")


def test_where_ccxt_picks_or_changes_rows_nothing_is_learnt() -> None:
    places, rows, made = Places(), [[1]], [(1,)]
    places.seen(visited({"list": [[1]]}, rows, made), made)
    assert places.of("klines") is None, "the rows are not those of the answer"
    places.seen(visited(rows, rows, made), list(made))
    places.seen(visited(rows, rows, made), made)
    assert places.of("klines") is None, "once it has changed what was made of them"


def test_a_page_that_ccxt_changed_unread_is_refused_and_the_next_one_is_ordinary() -> None:
    places, rows = Places(), [binance_row(at) for at in range(5)]
    places.seen(visited(rows, rows, rows), rows)
    answer, page = unread(json.dumps(rows), (), json.loads)
    assert page is not None
    visit = visited(answer, page, None, page)
    places.seen(visit, page)
    with pytest.raises(ExchangeUnavailable, match="changed"):
        places.seen(visit, page[:1])
    assert places.of("klines") is None
