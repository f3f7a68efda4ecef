"""Every check of a series' own rows finds what it is there for, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from collector.market.candles import CANDLE_SCHEMA
from collector.reports.row_checks import RowChecks
from tests.support.bars import BTC, MINUTE, at, flat
from tests.support.validated import NOW


def rows(**columns: Any) -> pa.Table:
    """Ten good minutes, with columns replaced."""
    table = flat(0, 10).to_arrow("binance")
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, pa.array(values))
    return table


def found(*tables: pa.Table) -> dict[str, tuple[int, list[Any]]]:
    checks = RowChecks(BTC, NOW)
    for table in tables:
        checks.add(table)
    return {n: (c.count, c.examples) for n, c in checks.checks.items() if not c.ok}


def replaced(place: int, value: float, name: str = "c") -> list[Any]:
    values = rows()[name].to_pylist()
    values[place] = value
    return values


def test_the_schema_of_the_checks_is_the_readers() -> None:
    assert set(rows().schema.names) == set(CANDLE_SCHEMA.names)


def test_good_rows_pass_every_check() -> None:
    assert found(rows()) == {}
    assert found(rows().slice(0, 3), rows().slice(3)) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_are_finite(value: float) -> None:
    assert found(rows(v=replaced(3, value, "v")))["finite"] == (1, [at(3)])


def test_columns_have_their_types_and_no_nulls() -> None:
    assert found(rows(ver=[1.0] * 10)) == {"types": (1, ["ver: double, not int32"])}
    assert found(rows(o=replaced(2, None, "o"))) == {"types": (1, ["o: 1 nulls"])}  # type: ignore[arg-type]


def test_the_low_is_the_lowest_and_the_high_the_highest() -> None:
    assert found(rows(c=replaced(4, 200.0))) == {"ohlc": (1, [at(4)])}
    assert found(rows(o=replaced(5, 1.0, "o"))) == {"ohlc": (1, [at(5)])}


def test_volume_is_not_negative() -> None:
    assert found(rows(v=replaced(6, -1.0, "v"))) == {"volume": (1, [at(6)])}


def test_time_goes_on_by_one_step() -> None:
    ts = rows()["ts"].to_pylist()
    assert found(rows(ts=[*ts[:4], ts[3], *ts[5:]])) == {
        "monotonic": (1, [at(3)]),
        "step": (1, [at(5)]),
    }
    assert found(rows(ts=[*ts[:9], at(11)])) == {"step": (1, [at(11)])}
    assert found(rows(ts=[*ts[:9], at(9) + 1]))["step"] == (1, [at(9) + 1])
    # A window that does not begin where the last one ended.
    assert found(rows().slice(0, 4), rows().slice(5)) == {"step": (1, [at(5)])}
    assert found(rows().slice(0, 4), rows().slice(3)) == {"monotonic": (1, [at(3)])}


def test_nothing_opens_in_the_future() -> None:
    late = [NOW + MINUTE * (n - 8) for n in range(10)]
    assert found(rows(ts=late)) == {"future": (1, [NOW + MINUTE])}


def test_many_cases_are_counted_and_few_are_shown() -> None:
    count, examples = found(rows(v=[-1.0] * 10))["volume"]
    assert (count, examples) == (10, [at(n) for n in range(5)])
