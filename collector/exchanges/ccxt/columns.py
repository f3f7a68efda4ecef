"""Decoding a page of bars by columns, the way ccxt itself would decode each row.

ccxt's `parse_ohlcv` knows where every venue keeps its open, high, low, close and volume, and takes
about six microseconds a row to look. The order of columns does not change within a page, so one row
is enough to learn it: a probe with a different value in every cell goes through ccxt's own parser,
and the result gives the mapping. The page is then converted column by column, and its first and
last row are compared with what ccxt makes of them.

Anything unusual (a cell that is not a plain number, rows of different lengths, an answer that
differs) makes this way unusable; the caller then lets ccxt parse every row.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from collector.durations import SECOND_MS
from collector.market.bar_rows import LATEST_MS, BarRows, rows_of
from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.exchanges.ccxt.unread import Unread

    Parse = Callable[[Any], Sequence[Any]]

_NUMBERS = frozenset({int, float})
_IN_NUMBERS = b"0123456789.,+-eE"
_PROBE = 1_700_000_000_000
_WIDTH = 7


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the seven columns of a bar are in a venue's row; None for one it does not send."""

    width: int
    time: int
    time_scale: int
    values: tuple[int | None, ...]


def learn(row: Any, parse: Parse) -> Columns | None:
    """The mapping of rows like this one; None when ccxt does more than pick cells."""
    if not isinstance(row, list) or not row:
        return None
    # As large as a real time: some parsers distinguish seconds from milliseconds by size.
    start = int(row[0]) if str(row[0]).isdigit() else _PROBE
    cells = [start + 7 * at for at in range(len(row))]
    probe = [
        str(cell) if isinstance(seen, str) else cell for cell, seen in zip(cells, row, strict=True)
    ]
    parsed = list(parse(probe))
    if len(parsed) != _WIDTH:
        return None
    scale = 1 if parsed[0] in cells else SECOND_MS
    time = _place(parsed[0], [cell * scale for cell in cells])
    values = tuple(None if value is None else _place(value, cells) for value in parsed[1:])
    unknown = [found for found, value in zip(values, parsed[1:], strict=True) if value is not None]
    if time is None or None in unknown:
        return None
    return Columns(len(row), time, scale, values)


def decode(
    rows: Sequence[Any], columns: Columns, parse: Parse
) -> list[tuple[float | None, ...]] | None:
    """All rows as (ts, o, h, l, c, v, t); None when they have to be parsed one by one."""
    if set(map(type, rows)) != {list} or len(rows[0]) != columns.width:
        return None
    try:
        cells = tuple(zip(*rows, strict=True))
        times = _times(cells[columns.time], columns.time_scale)
        values = [None if at is None else _numbers(cells[at]) for at in columns.values]
    except (TypeError, ValueError, OverflowError):
        return None
    absent = [None] * len(rows)
    bars = list(zip(times, *(absent if each is None else each for each in values), strict=True))
    for at in (0, -1):
        if bars[at] != tuple(parse(rows[at])):
            return None
    return bars


def picked(page: Unread, columns: Columns, parse: Parse) -> BarRows | None:
    """The bars of a page that is one table already; None when they have to be parsed as rows."""
    cells = page.cells
    if cells.shape[1] != columns.width:
        return None
    times = cells[:, columns.time]
    if times.min() < 0 or times.max() * columns.time_scale > LATEST_MS:
        return None
    batch = CandleBatch.of_columns(cells, (columns.time, *columns.values), columns.time_scale)
    if (batch.ts != times * columns.time_scale).any():
        return None  # Not whole milliseconds.
    for at, row in zip((slice(1), slice(-1, None)), page, strict=True):
        if rows_of(batch.take(at)) != [tuple(parse(row))]:
            return None
    return BarRows.of_bars(batch)


def of_one_length(rows: Any) -> Any:
    """Rows of another length than most keep their time only: their columns are not in place."""
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        return rows
    lengths = Counter(map(len, rows)).most_common(2)
    if len(lengths) < 2:
        return rows
    (usual, often), (_, next_often) = lengths
    return [row if len(row) == usual and often > next_often else row[:1] for row in rows]


def _times(column: tuple[Any, ...], scale: int) -> list[int]:
    times = _read(column) if isinstance(column[0], str) else list(column)
    if set(map(type, times)) != {int}:
        raise TypeError("not whole numbers")
    return times if scale == 1 else [time * scale for time in times]


def _numbers(column: tuple[Any, ...]) -> list[float]:
    if isinstance(column[0], str):
        numbers = _read(column)
    elif _NUMBERS.issuperset(map(type, column)):
        numbers = list(column)
    else:
        raise TypeError("not plain numbers")
    if not math.isfinite(sum(numbers)):
        raise ValueError("not finite")
    return numbers


def _read(texts: tuple[str, ...]) -> list[Any]:
    """The numbers that the texts are, read as one JSON list: six times as fast as one by one."""
    joined = ",".join(texts).encode()
    # ccxt has to decide about texts with other characters, whatever JSON made of them.
    if joined.translate(None, _IN_NUMBERS):
        raise ValueError("not plain numbers")
    numbers: list[Any] = orjson.loads(b"[%b]" % joined)
    if len(numbers) != len(texts):
        raise ValueError("not one number a text")
    return numbers


def _place(value: Any, cells: list[int]) -> int | None:
    return cells.index(value) if value in cells else None
