"""Part files: answers not merged yet.

A page part holds one page, in its series' own folder. A group part holds the pages of many series
of one exchange, sorted by series. Both are SEGMENT rows and a footer entry `part` (JSON):

    {"format": 1, "exchange": "binance", "writer": "9f3c...", "pages": {"1m": {"BTC/USDT": [
        [0, 1, 1699999920000, 1699999920000, 1700000000000, 7,
         [[1699999920000, 1699999980000, 1]]]]}}}

By timeframe and symbol: for each page the place of its first row, the number of its rows, its first
and its last opening time (null in an empty page), known_at, the fence, and what it adds to the
ledger: the intervals it covers, each with the number of bars that came.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from collector.errors import StoreError
from collector.market.candles import CandleBatch
from collector.market.labels import Labels
from collector.pipeline.fold import Sightings, Versions
from collector.store import layout
from collector.store.coverage import Covered, counted
from collector.store.port import Corrupt
from collector.store.segment import (
    GROUP_SCHEMA,
    PASSING,
    ROWS_PER_GROUP,
    SEGMENT_SCHEMA,
    Segment,
    encode,
    group_schema,
    to_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.store.page import Page
    from collector.store.port import Storage

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PageEntry:
    """Where a page is in its part, and what it covers."""

    at: int
    rows: int
    first_ts: int | None
    last_ts: int | None
    known_at: int
    fence: int
    covered: tuple[Covered, ...]

    def line(self) -> list[Any]:
        """From the footer."""
        covered = [[each.from_ms, each.to_ms, each.bars] for each in self.covered]
        ends = (self.first_ts, self.last_ts)
        return [self.at, self.rows, *ends, self.known_at, self.fence, covered]

    def overlaps(self, from_ms: int, to_ms: int) -> bool:
        return self.covered[0].from_ms < to_ms and from_ms < self.covered[-1].to_ms


@dataclass(frozen=True, slots=True)
class Part:
    """What a part's footer records. A part never changes, so this may be cached."""

    path: str
    exchange_id: str
    writer: str
    size: int
    """Series inside."""
    rows: int
    page_lines: dict[str, dict[str, list[Any]]]
    """The footer's `pages`, unparsed: most readers want one series of thousands."""
    made_at: int = 0
    replaces: frozenset[str] = frozenset()
    """Names of the parts whose rows are all in this one, or sealed; see gathering.py."""

    def pages(self, symbol: str, timeframe: str) -> tuple[PageEntry, ...]:
        """The pages of one series."""
        lines = self.page_lines.get(timeframe, {}).get(symbol, ())
        return tuple(_entry(*line) for line in lines)

    def series(self) -> Iterator[tuple[str, str]]:
        """Symbol and timeframe of each series inside."""
        for timeframe, symbols in self.page_lines.items():
            yield from ((symbol, timeframe) for symbol in symbols)


def _entry(
    at: int,
    rows: int,
    first_ts: int | None,
    last_ts: int | None,
    known_at: int,
    fence: int,
    covered: list[tuple[int, int, int]],
) -> PageEntry:
    ledger = tuple(Covered(*each) for each in covered)
    return PageEntry(at, rows, first_ts, last_ts, known_at, fence, ledger)


def encode_page(page: Page, writer: str) -> bytes:
    return encode(_rows([page]), _footer(page.series.exchange_id, writer, [page]), PASSING)


def encode_group(pages: Sequence[Page], writer: str) -> tuple[bytes, pa.Table]:
    """One file for pages of any series of one exchange, and its rows as SEGMENT_SCHEMA."""
    exchanges = {page.series.exchange_id for page in pages}
    if len(exchanges) != 1:
        raise ValueError(f"a group part belongs to one exchange, not to {sorted(exchanges)}")
    ordered = sorted(pages, key=_series_order)
    counts = [len(page.batch) for page in ordered]
    symbols = [page.series.symbol for page in ordered]
    frames = [page.series.timeframe.name for page in ordered]
    names = [Labels.repeated(each, counts).to_arrow() for each in (symbols, frames)]
    rows = _rows(ordered)
    table = pa.Table.from_arrays([*names, *rows.columns], schema=group_schema(*exchanges))
    return encode(table, _footer(exchanges.pop(), writer, ordered), PASSING), rows


def encode_rows(
    exchange_id: str,
    writer: str,
    rows: pa.Table,
    pages: Sequence[tuple[tuple[str, str], PageEntry]],
    *,
    made_at: int,
    replaces: Sequence[str],
) -> bytes:
    """One file for rows of other parts: a page a series, in the order of the rows."""
    counts = [page.rows for _, page in pages]
    keys = zip(*(key for key, _ in pages), strict=True)
    names = [Labels.repeated(each, counts).to_arrow() for each in keys]
    lines: dict[str, dict[str, list[Any]]] = {}
    for (symbol, timeframe), page in pages:
        lines.setdefault(timeframe, {})[symbol] = [page.line()]
    table = pa.Table.from_arrays([*names, *rows.columns], schema=group_schema(exchange_id))
    more = {"made_at": made_at, "replaces": sorted(replaces)}
    return encode(table, _part_field(exchange_id, writer, lines, more), PASSING)


def read_part(storage: Storage, path: str) -> Part:
    """Checks the whole part against its name and returns its footer. Raises Vanished or Corrupt.

    A format that this program does not know is not damage and must not be set aside: it is a plain
    StoreError, and everything stops until the program is as new as its files.
    """
    data = storage.read(path)
    if not layout.is_whole(path, data):
        raise Corrupt(path, "it is not what was written")
    segment = Segment(path, pa.BufferReader(data))
    try:
        footer = orjson.loads(segment.metadata("part") or "null")
        if footer["format"] != _FORMAT:
            raise StoreError(f"{path} has format {footer['format']}: a newer program wrote it")
        if not layout.belongs(path, footer["exchange"], footer["pages"]):
            raise Corrupt(path, "it holds the bars of something else")
        size = sum(len(symbols) for symbols in footer["pages"].values())
        replaces = frozenset(footer.get("replaces", ()))
        who = (path, footer["exchange"], footer["writer"])
        made_at = int(footer.get("made_at", 0))
        return Part(*who, size, segment.rows, footer["pages"], made_at, replaces)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Corrupt(path, error) from error
    finally:
        segment.close()


def groups_of(entries: Sequence[PageEntry]) -> list[int]:
    """The row groups that hold these pages. Every one but the last of a part is full."""
    return sorted({group for entry in entries for group, _, _ in _pieces(entry)})


def rows_of(path: str, entries: Sequence[PageEntry], groups: Mapping[int, pa.Table]) -> pa.Table:
    """The rows of some pages of a part, out of the row groups that hold them."""
    pieces = [
        groups[group].slice(at, rows) for entry in entries for group, at, rows in _pieces(entry)
    ]
    return pa.concat_tables(pieces) if pieces else _schema(path).empty_table()


def read_groups(storage: Storage, path: str, groups: Sequence[int]) -> dict[int, pa.Table]:
    """Row groups of a part, as SEGMENT_SCHEMA. Raises Vanished or Corrupt."""
    segment = Segment.open(storage, path)
    try:
        return {group: segment.read([group], _schema(path).names) for group in groups}
    finally:
        segment.close()


def read_all(storage: Storage, path: str) -> pa.Table:
    """Every row of a part, as SEGMENT_SCHEMA. Raises Vanished or Corrupt."""
    segment = Segment.open(storage, path)
    try:
        return segment.read(range(segment.groups), _schema(path).names)
    finally:
        segment.close()


def _schema(path: str) -> pa.Schema:
    """Of the rows of a part: SEGMENT_SCHEMA and the further columns of its exchange."""
    schema = group_schema(path.partition("/")[0])
    return pa.schema(list(schema)[len(GROUP_SCHEMA) - len(SEGMENT_SCHEMA) :])


def _pieces(entry: PageEntry) -> Iterator[tuple[int, int, int]]:
    """Where the rows of a page are: row group, place in it, number of rows."""
    at, end = entry.at, entry.at + entry.rows
    while at < end:
        group, place = divmod(at, ROWS_PER_GROUP)
        rows = min(end - at, ROWS_PER_GROUP - place)
        yield group, place, rows
        at += rows


def _rows(pages: Sequence[Page]) -> pa.Table:
    """The bars of all pages, one after the other, each known when its page was."""
    counts = [len(page.batch) for page in pages]
    known_at = np.repeat(np.array([page.known_at for page in pages], dtype=np.int64), counts)
    source = Labels.repeated([page.source for page in pages], counts)
    batch = CandleBatch.concat([page.batch for page in pages])
    sightings = Sightings(batch, known_at, known_at, source)
    return to_table(Versions(sightings, np.ones(len(batch), dtype=np.int32)), pages[0].series.extra)


def _series_order(page: Page) -> tuple[str, int, str, int]:
    timeframe = page.series.timeframe
    return page.series.symbol, timeframe.ms, timeframe.name, page.known_at


def _footer(exchange_id: str, writer: str, pages: Sequence[Page]) -> dict[str, str]:
    lines: dict[str, dict[str, list[Any]]] = {}
    places = accumulate((len(page.batch) for page in pages), initial=0)
    for at, page in zip(places, pages, strict=False):
        ts = page.batch.ts
        first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (None, None)
        covered = counted(page.covered, ts)
        entry = PageEntry(at, len(ts), first, last, page.known_at, page.fence, covered)
        symbols = lines.setdefault(page.series.timeframe.name, {})
        symbols.setdefault(page.series.symbol, []).append(entry.line())
    return _part_field(exchange_id, writer, lines)


def _part_field(
    exchange_id: str,
    writer: str,
    pages: dict[str, dict[str, list[Any]]],
    more: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, str]:
    part = {"format": _FORMAT, "exchange": exchange_id, "writer": writer, **more, "pages": pages}
    return {"kind": "part", "exchange": exchange_id, "part": orjson.dumps(part).decode()}
