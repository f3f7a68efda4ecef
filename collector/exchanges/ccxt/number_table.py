"""The table of numbers in a text of rows that are all alike: `[1,"2.5"],[3,"4.5"]`.

All digits taken out, every row must leave the same marks. Then the place of a number follows from
the places of the commas alone, and Arrow reads all of them in one go, without a Python object each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

_IN_NUMBERS = b"0123456789.+-eE"
_AROUND_NUMBERS = b'[]", '
_COMMA, _DOT, _ZERO, _NINE = b",.09"
_BARE = re.compile(rb"-?(0|[1-9][0-9]*)([.eE]|$)")


def number_table(body: bytes) -> NDArray[np.float64] | None:
    """A line for each row; None when rows are not all alike, or a cell is not a finite number."""
    marks = body.translate(None, _IN_NUMBERS)
    row = marks[: marks.find(b"]") + 1]
    rows, width = marks.count(b"["), row.count(b",") + 1
    # Text in quotes has to be a number: a comma in it would leave a quote without its pair.
    if row.replace(b'""', b"").replace(b" ", b"") != b"[" + b"," * (width - 1) + b"]":
        return None
    separator = b", " if marks[len(row) : len(row) + 2] == b", " else b","
    if marks != separator.join([row] * rows):
        return None
    digits = body.translate(None, _AROUND_NUMBERS)
    places = _places(body, row, len(row) + len(separator), (rows, width), len(digits))
    bare = [at for at, cell in enumerate(row[1:-1].split(b",")) if b'"' not in cell]
    if not _are_json(digits, places, bare, width):
        return None
    texts = pa.StringArray.from_buffers(rows * width, pa.py_buffer(places), pa.py_buffer(digits))
    try:
        cells: NDArray[np.float64] = texts.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    return cells.reshape(rows, width) if np.isfinite(cells).all() else None


def _places(
    body: bytes, row: bytes, stride: int, shape: tuple[int, int], end: int
) -> NDArray[np.int32]:
    """Where each number begins in the digits alone, and behind them where the last one ends.

    `row` are the marks of a row, and `stride` how many there are from one row to the next.
    """
    rows, width = shape
    commas = np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == _COMMA)
    marks_before = [at for at, mark in enumerate(row + b",") if mark == _COMMA]
    removed = np.add.outer(np.arange(rows) * stride, marks_before).ravel()
    places = np.empty(rows * width + 1, dtype=np.int32)
    places[0], places[-1] = 0, end
    places[1:-1] = commas - removed[:-1]
    return places


def _are_json(digits: bytes, places: NDArray[np.int32], bare: list[int], width: int) -> bool:
    """Whether the numbers of the columns without quotes are spelt as in JSON.

    Arrow also reads `01`, `+1`, `.5`, `5.` and `5.e1`, which ccxt accepts as texts only.
    """
    text = np.frombuffer(digits, dtype=np.uint8)
    for at in bare:
        starts, ends = places[at:-1:width], places[at + 1 :: width]
        first = text.take(starts)
        usual = ((first > _ZERO) & (first <= _NINE)) | ((first == _ZERO) & (ends - starts == 1))
        if not usual.all():
            unusual = (digits[a:b] for a, b in zip(starts[~usual], ends[~usual], strict=True))
            if not all(_BARE.match(number) for number in unusual):
                return False
        if (text.take(ends - 1) == _DOT).any():
            return False
    with_power = b"e" in digits or b"E" in digits
    return not (bare and with_power) or (b".e" not in digits and b".E" not in digits)
