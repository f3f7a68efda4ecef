"""The table of numbers in a text of rows that are all alike: `[1,"2.5"],[3,"4.5"]`.

All digits taken out, every row must leave the same marks. Without its quotes the text is then JSON
of nothing but numbers, which simdjson reads into one buffer, without a Python object each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import simdjson

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IN_NUMBERS = b"0123456789.+-eE"
_NOT_NUMBERS = (ValueError, TypeError, RuntimeError)
"""simdjson's errors: not JSON, not a number, a whole number of more than 64 bits."""


def number_table(body: bytes) -> NDArray[np.float64] | None:
    """A line for each row; None when rows are not all alike, or a cell is not a finite number.

    Numbers in quotes have to be spelt as those without: ccxt decides about `.5`, `01` and `+1`.
    """
    marks = body.translate(None, _IN_NUMBERS)
    row = marks[: marks.find(b"]") + 1]
    rows, width = marks.count(b"["), row.count(b",") + 1
    # Text in quotes has to be a number: a comma in it would leave a quote without its pair.
    if row.replace(b'""', b"").replace(b" ", b"") != b"[" + b"," * (width - 1) + b"]":
        return None
    separator = b", " if marks[len(row) : len(row) + 2] == b", " else b","
    if marks != separator.join([row] * rows):
        return None
    try:
        table = simdjson.Parser().parse(b"[%b]" % body.translate(None, b'"'))
        assert isinstance(table, simdjson.Array)
        cells = np.frombuffer(table.as_buffer(of_type="d"))
    except _NOT_NUMBERS:
        return None
    return cells.reshape(rows, width)
