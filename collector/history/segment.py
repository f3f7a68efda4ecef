"""One segment of the ledger: its columns, its name, and how its bytes are made and read.

    {first}-{last}-{from}-{to}-{rows}-{digest}.parquet

A segment answers for the sequences `[first, last]`, has a row for each accepted input among them,
and encloses all their times in `[from, to)`. Rows ascend by time, so that a window is found by the
statistics of row groups. The digest is the content's, so that a damaged segment is noticed.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collector.history import uint256
from collector.history.layout import SUFFIX, check_digest, digest_of
from collector.history.pair import Pair
from collector.history.trade_columns import TradeColumns
from collector.store.signature import build_signature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.history.event import CanonicalTrade, Op

WORD = pa.dictionary(pa.int32(), pa.string())
"""A text of which there are few: an op, a pair."""
LEDGER_SCHEMA = pa.schema(
    [
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("input", pa.int32(), nullable=False),
        pa.field("op", WORD, nullable=False),
        pa.field("tx_hash", pa.string(), nullable=False),
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("pair", WORD, nullable=False),
        pa.field("price", uint256.WIDE, nullable=False),
        pa.field("base", uint256.WIDE, nullable=False),
        pa.field("quote", uint256.WIDE, nullable=False),
    ]
)
"""One row an input and op. A deletion's row repeats the trade it deletes, with its time, so that a
window of time holds both or neither."""
WORDS = ["op", "pair"]
ROWS_PER_GROUP = 8_192

_NAME = re.compile(r"([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,16})-([0-9]{1,16})-([0-9]{1,12})-(\w+)")


@dataclass(frozen=True, slots=True)
class LedgerSegment:
    """A file of the ledger. Rows up to `after` are in another one as well and do not count."""

    path: str
    first: int
    last: int
    from_ms: int
    to_ms: int
    rows: int
    after: int = 0

    def overlaps(self, from_ms: int, to_ms: int) -> bool:
        return self.from_ms < to_ms and from_ms < self.to_ms


def parse_segment(folder: str, name: str) -> LedgerSegment | None:
    """None for a file that is not a segment, whatever it is doing there."""
    match = _NAME.fullmatch(name.removesuffix(SUFFIX)) if name.endswith(SUFFIX) else None
    if match is None:
        return None
    first, last, from_ms, to_ms, rows = (int(match[at]) for at in range(1, 6))
    return LedgerSegment(f"{folder}/{name}", first, last, from_ms, to_ms, rows, first - 1)


def encode(folder: str, first: int, last: int, table: pa.Table) -> tuple[LedgerSegment, bytes]:
    """The segment that these rows make, and its bytes."""
    table = in_time_order(table)
    sink = pa.BufferOutputStream()
    pq.write_table(
        table.replace_schema_metadata({"build_signature": build_signature()}),
        sink,
        row_group_size=ROWS_PER_GROUP,
        use_dictionary=WORDS,
        compression="zstd",
        compression_level=1,
        write_page_checksum=True,
    )
    data = sink.getvalue().to_pybytes()
    from_ms, to_ms = (table["ts"][0].as_py(), table["ts"][-1].as_py() + 1) if len(table) else (0, 0)
    name = f"{first:020}-{last:020}-{from_ms}-{to_ms}-{len(table)}-{digest_of(data)}{SUFFIX}"
    path = f"{folder}/{name}"
    return LedgerSegment(path, first, last, from_ms, to_ms, len(table), first - 1), data


def decode(path: str, data: bytes) -> pa.Table:
    """All rows of a segment. Raises Corrupt when the bytes are not those that were named."""
    check_digest(path, digest_of(data))
    return pq.read_table(pa.BufferReader(data), read_dictionary=WORDS).cast(LEDGER_SCHEMA)


def in_time_order(table: pa.Table) -> pa.Table:
    """By time, sequence and input."""
    keys = [(name, "ascending") for name in ("ts", "sequence", "input")]
    ts = table["ts"].to_numpy()
    sequence = table["sequence"].to_numpy()
    later = (ts[1:] > ts[:-1]) | ((ts[1:] == ts[:-1]) & (sequence[1:] > sequence[:-1]))
    return table if later.all() else table.sort_by(keys)


def ledger_rows(rows: Sequence[tuple[int, int, Op, str, CanonicalTrade]]) -> pa.Table:
    """A table of (sequence, input, op, hash, trade)."""
    trades = [row[4] for row in rows]
    columns = [
        pa.array([row[0] for row in rows], pa.int64()),
        pa.array([row[1] for row in rows], pa.int32()),
        pa.array([row[2].value for row in rows], pa.string()).dictionary_encode(),
        pa.array([row[3] for row in rows], pa.string()),
        pa.array([trade.ts for trade in trades], pa.int64()),
        pa.array([str(trade.pair) for trade in trades], pa.string()).dictionary_encode(),
        *(
            uint256.to_arrow(uint256.from_ints([getattr(trade, name) for trade in trades]))
            for name in ("price", "base", "quote")
        ),
    ]
    return pa.Table.from_arrays(columns, schema=LEDGER_SCHEMA)


def trade_columns(table: pa.Table) -> TradeColumns:
    """The trades of ledger rows, in their order."""
    pairs = table["pair"].unify_dictionaries().combine_chunks()
    if isinstance(pairs, pa.ChunkedArray):
        pairs = pairs.chunk(0) if pairs.num_chunks else pa.array([], WORD)
    # Two bytes are sorted several times as fast as four.
    codes = pairs.indices.to_numpy().astype(np.uint16 if len(pairs.dictionary) < 1 << 16 else "i4")
    return TradeColumns(
        tuple(parse_pair(each) for each in pairs.dictionary.to_pylist()),
        codes,
        table["ts"].to_numpy(),
        *(uint256.trimmed(uint256.from_arrow(table[name])) for name in ("price", "base", "quote")),
    )


@functools.lru_cache(maxsize=65_536)
def parse_pair(text: str) -> Pair:
    return Pair.parse(text)
