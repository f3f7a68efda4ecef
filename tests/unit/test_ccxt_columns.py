"""Pages by columns are what ccxt makes of every row, or are left to ccxt."""

from __future__ import annotations

import random
from typing import Any

import ccxt
import pytest

from collector.exchanges.ccxt.columns import decode, learn

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


@pytest.mark.parametrize("exchange_id", VENUES)
def test_a_page_is_what_ccxt_makes_of_each_row(exchange_id: str) -> None:
    make, turnover = VENUES[exchange_id]
    parse = parser(exchange_id, turnover)
    rows = [make(at) for at in range(500)]
    columns = learn(rows[0], parse)
    assert columns is not None
    decoded = decode(rows, columns, parse)
    assert decoded == [tuple(parse(row)) for row in rows]


@pytest.mark.parametrize("cell", [None, "abc", "", [], {}, True, "NaN", "inf", float("nan")])
@pytest.mark.parametrize("place", [0, 1, 5, 7])
def test_an_odd_cell_leaves_the_page_to_ccxt(cell: Any, place: int) -> None:
    parse = parser("binance", 7)
    rows = [binance_row(at) for at in range(20)]
    columns = learn(rows[0], parse)
    assert columns is not None
    rows[10][place] = cell
    assert decode(rows, columns, parse) is None


def test_rows_of_other_shapes_are_left_to_ccxt() -> None:
    parse = parser("binance", 7)
    rows: list[Any] = [binance_row(at) for at in range(5)]
    columns = learn(rows[0], parse)
    assert columns is not None
    assert decode([*rows, rows[0][:6]], columns, parse) is None
    assert decode([*rows, {"t": 1}], columns, parse) is None
    assert learn({"t": 1}, parse) is None
    assert learn([], parse) is None


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
    columns = learn(rows[0], parse)
    assert columns is not None
    rows[1][4] = cell
    decoded = decode(rows, columns, parse)
    assert decoded is None or decoded == [tuple(parse(row)) for row in rows]


def test_a_comma_in_one_cell_and_nothing_in_another_do_not_make_two_numbers() -> None:
    parse = parser("binance", 7)
    rows = [binance_row(at) for at in range(4)]
    columns = learn(rows[0], parse)
    assert columns is not None
    rows[1][4], rows[2][4] = "1,2", ""
    assert decode(rows, columns, parse) is None
