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
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa

from collector.errors import StoreError
from collector.market.candles import CandleBatch
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
    to_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.store.page import Page
    from collector.store.port import Storage

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class PageEntry:
    """Where a page lies in its part, and what it proves."""

    at: int
    rows: int
    first_ts: int | None
    last_ts: int | None
    known_at: int
    fence: int
    covered: tuple[Covered, ...]

    def line(self) -> list[Any]:
        """As the footer tells it."""
        covered = [[each.from_ms, each.to_ms, each.bars] for each in self.covered]
        ends = (self.first_ts, self.last_ts)
        return [self.at, self.rows, *ends, self.known_at, self.fence, covered]

    def overlaps(self, from_ms: int, to_ms: int) -> bool:
        return self.covered[0].from_ms < to_ms and from_ms < self.covered[-1].to_ms


@dataclass(frozen=True, slots=True)
class Part:
    """What a part's footer tells. A part never changes, so this may be kept at will."""

    path: str
    exchange_id: str
    writer: str
    size: int
    """Series inside."""
    rows: int
    told: dict[str, dict[str, list[Any]]]
    """The footer's `pages`. Most readers want one series of thousands, so it stays as it is."""

    def pages(self, symbol: str, timeframe: str) -> tuple[PageEntry, ...]:
        """The pages of one series."""
        told = self.told.get(timeframe, {}).get(symbol, ())
        return tuple(_entry(*line) for line in told)

    def series(self) -> Iterator[tuple[str, str]]:
        """Symbol and timeframe of each series inside."""
        for timeframe, symbols in self.told.items():
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


def encode_group(pages: Sequence[Page], writer: str) -> bytes:
    """One file for pages of one exchange, whatever their series."""
    exchanges = {page.series.exchange_id for page in pages}
    if len(exchanges) != 1:
        raise ValueError(f"a group part belongs to one exchange, not to {sorted(exchanges)}")
    ordered = sorted(pages, key=_series_order)
    counts = [len(page.batch) for page in ordered]
    symbols = [page.series.symbol for page in ordered]
    frames = [page.series.timeframe.name for page in ordered]
    names = [_repeated(each, counts) for each in (symbols, frames)]
    table = pa.Table.from_arrays([*names, *_rows(ordered).columns], schema=GROUP_SCHEMA)
    return encode(table, _footer(exchanges.pop(), writer, ordered), PASSING)


def encode_rows(
    exchange_id: str,
    writer: str,
    tables: Sequence[pa.Table],
    pages: Sequence[tuple[tuple[str, str], PageEntry]],
) -> bytes:
    """One file for rows that came from parts: a table and a page a series, in the same order."""
    counts = [len(table) for table in tables]
    names = [_repeated(each, counts) for each in zip(*(key for key, _ in pages), strict=True)]
    rows = pa.concat_tables(tables)
    told: dict[str, dict[str, list[Any]]] = {}
    for (symbol, timeframe), page in pages:
        told.setdefault(timeframe, {})[symbol] = [page.line()]
    table = pa.Table.from_arrays([*names, *rows.columns], schema=GROUP_SCHEMA)
    return encode(table, _told(exchange_id, writer, told), PASSING)


def read_part(storage: Storage, path: str) -> Part:
    """Checks the whole part against its name and tells its footer. Raises Vanished or Corrupt.

    A format this program does not know is no damage and must not be set aside as such: it is a
    plain StoreError, and everything stops until the program is as new as its files.
    """
    data = storage.read(path)
    if not layout.is_whole(path, data):
        raise Corrupt(path, "it is not what was written")
    segment = Segment(path, pa.BufferReader(data))
    try:
        told = orjson.loads(segment.metadata("part") or "null")
        if told["format"] != _FORMAT:
            raise StoreError(f"{path} has format {told['format']}: a newer program wrote it")
        size = sum(len(symbols) for symbols in told["pages"].values())
        return Part(path, told["exchange"], told["writer"], size, segment.rows, told["pages"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Corrupt(path, error) from error
    finally:
        segment.close()


def read_pages(storage: Storage, part: Part, entries: Sequence[PageEntry]) -> pa.Table:
    """The rows of some pages of a part, as SEGMENT_SCHEMA. Each row group is read once."""
    wanted = [(entry, _groups_of(entry)) for entry in entries if entry.rows]
    if not wanted:
        return SEGMENT_SCHEMA.empty_table()
    groups = sorted({group for _, its in wanted for group in its})
    places = {group: place for place, group in enumerate(groups)}
    segment = Segment.open(storage, part.path)
    try:
        table = segment.read(groups, SEGMENT_SCHEMA.names)
    finally:
        segment.close()
    tables = []
    for entry, its in wanted:
        skipped = its[0] - places[its[0]]
        tables.append(table.slice(entry.at - skipped * ROWS_PER_GROUP, entry.rows))
    return pa.concat_tables(tables)


def read_all(storage: Storage, part: Part) -> pa.Table:
    """Every row of a part, as SEGMENT_SCHEMA."""
    segment = Segment.open(storage, part.path)
    try:
        return segment.read(range(segment.groups), SEGMENT_SCHEMA.names).combine_chunks()
    finally:
        segment.close()


def _groups_of(entry: PageEntry) -> range:
    """Every row group but the last is full, so a row's place tells its group."""
    first, last = entry.at // ROWS_PER_GROUP, (entry.at + entry.rows - 1) // ROWS_PER_GROUP
    return range(first, last + 1)


def _rows(pages: Sequence[Page]) -> pa.Table:
    """The bars of all pages, one after the other, each known when its page was."""
    counts = [len(page.batch) for page in pages]
    known_at = np.repeat(np.array([page.known_at for page in pages], dtype=np.int64), counts)
    source = np.repeat(np.array([page.source for page in pages], dtype=np.object_), counts)
    batch = CandleBatch.concat([page.batch for page in pages])
    sightings = Sightings(batch, known_at, known_at, source)
    return to_table(Versions(sightings, np.ones(len(batch), dtype=np.int32)))


def _repeated(texts: Sequence[str], counts: Sequence[int]) -> pa.Array:
    """Each text so many times."""
    return pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), counts)))


def _series_order(page: Page) -> tuple[str, int, str, int]:
    timeframe = page.series.timeframe
    return page.series.symbol, timeframe.ms, timeframe.name, page.known_at


def _footer(exchange_id: str, writer: str, pages: Sequence[Page]) -> dict[str, str]:
    told: dict[str, dict[str, list[Any]]] = {}
    places = accumulate((len(page.batch) for page in pages), initial=0)
    for at, page in zip(places, pages, strict=False):
        ts = page.batch.ts
        first, last = (int(ts[0]), int(ts[-1])) if len(ts) else (None, None)
        covered = counted(page.covered, ts)
        entry = PageEntry(at, len(ts), first, last, page.known_at, page.fence, covered)
        symbols = told.setdefault(page.series.timeframe.name, {})
        symbols.setdefault(page.series.symbol, []).append(entry.line())
    return _told(exchange_id, writer, told)


def _told(exchange_id: str, writer: str, pages: dict[str, dict[str, list[Any]]]) -> dict[str, str]:
    part = {"format": _FORMAT, "exchange": exchange_id, "writer": writer, "pages": pages}
    return {"part": orjson.dumps(part).decode()}
