"""Numbers that are read in one go are the numbers that Python reads, to the last bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.exchanges.ccxt.unread import number_table

CELLS = st.one_of(
    st.integers(-(2**63), 2**63).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=8).map(
        "{:f}".format
    ),
)


def body(rows: list[list[str]], quoted: list[bool], separator: str) -> bytes:
    def written(row: list[str]) -> str:
        cells = (f'"{c}"' if q else c for c, q in zip(row, quoted, strict=True))
        return f"[{separator.join(cells)}]"

    return separator.join(map(written, rows)).encode()


@given(
    st.integers(1, 6).flatmap(
        lambda width: st.tuples(
            st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=8),
            st.lists(st.booleans(), min_size=width, max_size=width),
        )
    ),
    st.sampled_from([",", ", "]),
)
def test_every_cell_is_what_python_reads(
    page: tuple[list[list[str]], list[bool]], separator: str
) -> None:
    rows, quoted = page
    found = number_table(body(rows, quoted, separator))
    expected = np.array([[float(cell) for cell in row] for row in rows])
    assert found is not None
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("cell", ["01", "-01", "+1", ".5", "-.5", "5.", "5.e1", "5.E1", "00"])
def test_what_is_no_json_is_not_read_without_quotes(cell: str) -> None:
    rows = [["1700000000000", "2"], [cell, "3"], ["1700000000001", "4"]]
    assert number_table(body(rows, [False, False], ",")) is None
    with pytest.raises(ValueError, match="line 1"):
        json.loads(b"[%b]" % body(rows, [False, False], ","))
    found = number_table(body(rows, [True, False], ","))
    assert found is None or found[1, 0] == float(cell), "as a text it may be read, as ccxt does"


@pytest.mark.parametrize("cell", ["0", "0.5", "-0", "-0.5", "0e1", "10", "1e5", "1E+5"])
def test_whatever_is_json_is_read_without_quotes(cell: str) -> None:
    found = number_table(body([["1", cell], ["2", "0"]], [False, False], ","))
    assert found is not None
    assert found[0, 1] == json.loads(cell)


@pytest.mark.parametrize(
    "cell", ["", "-", "e", "1e", "1-2", "1.2.3", "--1", "1e999", "0x1", "9" * 20]
)
@pytest.mark.parametrize("quoted", [True, False])
def test_what_is_no_finite_number_is_left_alone(cell: Any, quoted: bool) -> None:
    rows = [["1", "2"], ["3", cell], ["4", "5"]]
    assert number_table(body(rows, [False, quoted], ",")) is None
