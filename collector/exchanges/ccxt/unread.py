"""Pages of bars whose numbers are read in one go and never become rows.

Most venues send a page as a list of rows that are all alike: numbers, or numbers as text. Where
ccxt takes that list from one place of an answer, passes it to `parse_ohlcvs` and returns the
result, it never reads a row itself. An ordinary page of an endpoint shows whether that is so
(`Places`). From then on ccxt is given a stand-in with the first and the last row, and the numbers
go from the text into one table.

Which column is which is known to ccxt's `parse_ohlcv` alone. The order does not change within a
page, so one row is enough to learn it: a probe with a different value in every cell goes through
that parser. The first and the last row of each page are compared with what ccxt makes of them.

A page that is not exactly alike in every row is parsed by ccxt, row by row. If ccxt ever returns
something else than what it was given, the answer is refused and the endpoint is ordinary for good.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import simdjson

from collector.durations import SECOND_MS
from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.empty import at
from collector.market.bar_rows import LATEST_MS, BarRows, rows_of
from collector.market.candles import CandleBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from collector.exchanges.ccxt.visit import Visit

    Parse = Callable[[Any], Sequence[Any]]

Path = tuple[str, ...]

_DEEPEST = 4
_PROBE = 1_700_000_000_000
_WIDTH = 7
_IN_NUMBERS = b"0123456789.+-eE"
_NOT_NUMBERS = (ValueError, TypeError, RuntimeError)
"""simdjson's errors: not JSON, not a number, a whole number of more than 64 bits."""


class Unread(list[Any]):
    """Replaces a page in what ccxt is given: its first and its last row."""

    __slots__ = ("bars", "cells", "path", "text")

    def __init__(self, text: str, path: Path, body: bytes, cells: NDArray[np.float64]) -> None:
        first = orjson.loads(body[: body.index(b"]") + 1])
        last = orjson.loads(body[body.rindex(b"[") :])
        super().__init__((first, last))
        self.text = text
        self.path = path
        self.cells = cells
        """Every cell of the page, as a number: a line for each row."""
        self.bars: BarRows | None = None


@dataclass(slots=True)
class Places:
    """Where the rows are in the answers of an endpoint, as learnt from pages."""

    _known: dict[str, Path | None] = field(default_factory=dict)

    def of(self, endpoint: str) -> Path | None:
        """None as long as it is not known, and where ccxt looks at rows itself."""
        return self._known.get(endpoint)

    def seen(self, visit: Visit, returned: Any) -> None:
        """Learns from what ccxt returned for a page. Raises ExchangeUnavailable when it is lost."""
        if visit.last is None or not returned:
            return
        if visit.unread is None and returned is visit.parsed:
            path = _path_to(visit.last.json, visit.raw_rows)
            if path is not None:
                self._known.setdefault(visit.last.call.endpoint, path)
        elif returned is not visit.unread:
            self.refuse(visit)
            if visit.unread is not None:
                raise ExchangeUnavailable("a page of bars was changed before it was read")

    def refuse(self, visit: Visit) -> None:
        """ccxt does something to the rows, or to what is made of them."""
        if visit.last is not None:
            self._known[visit.last.call.endpoint] = None


def unread(
    text: str, path: Path, parse_json: Callable[[str], Any]
) -> tuple[Any, Unread] | tuple[None, None]:
    """An answer with a stand-in for its rows, and that; Nones when rows are not all alike."""
    start, end = text.find("[["), text.rfind("]]")
    if not 0 <= start < end:
        return None, None
    body = text[start + 1 : end + 1].encode()
    cells = number_table(body)
    if cells is None:
        return None, None
    shell = parse_json(text[: start + 1] + text[end + 1 :])
    if at(shell, path) != []:
        return None, None
    page = Unread(text, path, body, cells)
    if not path:
        return page, page
    at(shell, path[:-1])[path[-1]] = page
    return shell, page


def _path_to(json: Any, picked: Any, depth: int = 0) -> Path | None:
    """The keys that lead to the very list that ccxt picked."""
    if json is picked:
        return ()
    if depth == _DEEPEST or not isinstance(json, dict):
        return None
    for key, value in json.items():
        below = _path_to(value, picked, depth + 1)
        if below is not None:
            return (key, *below)
    return None


def number_table(body: bytes) -> NDArray[np.float64] | None:
    """The numbers in a text of rows that are all alike, `[1,"2.5"],[3,"4.5"]`: a line for each row.

    All digits taken out, every row must leave the same marks. Without its quotes the text is then
    JSON of nothing but numbers, which simdjson reads into one buffer, without a Python object each.
    None when rows are not all alike, or a cell is not a finite number. Numbers in quotes have to be
    spelt as those without: ccxt decides about `.5`, `01` and `+1`.
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
    cells = [start + 7 * place for place in range(len(row))]
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
    for place, row in zip((slice(1), slice(-1, None)), page, strict=True):
        if rows_of(batch.take(place)) != [tuple(parse(row))]:
            return None
    return BarRows.of_bars(batch)


def _place(value: Any, cells: list[int]) -> int | None:
    return cells.index(value) if value in cells else None
