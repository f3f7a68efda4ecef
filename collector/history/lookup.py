"""What the ledger holds about the inputs of a batch: looked up in the windows of their times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.history import uint256
from collector.history.event import CanonicalTrade, Op
from collector.history.judging import Candidate
from collector.history.policy import Outcome
from collector.history.segment import parse_pair
from collector.market.interval import Interval, union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.history.event import Event
    from collector.history.ledger import Ledger

    Standing = dict[tuple[str, int, int], dict[int, CanonicalTrade]]


@dataclass(frozen=True, slots=True)
class Known:
    """The last row that the ledger has of an input: its sequence, and whether a trade stands."""

    sequence: int
    stands: bool

    @property
    def op(self) -> Op:
        """What a repetition of the last event would be."""
        return Op.ADD if self.stands else Op.DELETE


def standing_trades(
    ledger: Ledger, bucket_ms: int, given: Sequence[Candidate] | pa.Table
) -> Standing:
    """The trades of these inputs that stand in their buckets, by hash, input and bucket.

    An entry without trades: all that were there have been deleted.
    """
    if isinstance(given, pa.Table):
        hashes, ts = given["tx_hash"], given["ts"].to_numpy()
    else:
        hashes = pa.array([each.tx_hash for each in given], pa.string())
        ts = np.array([each.ts for each in given], dtype=np.int64)
    standing: Standing = {}
    for each in _rows_of(ledger, bucket_ms, hashes, ts):
        _follow(standing, each, bucket_ms)
    return standing


def known_inputs(
    ledger: Ledger, bucket_ms: int, events: Sequence[Event]
) -> dict[tuple[str, int, int], Known]:
    """What the ledger has of these transactions in the buckets of their times, by input."""
    hashes = pa.array([each.tx_hash for each in events], pa.string())
    ts = np.array([each.ts for each in events], dtype=np.int64)
    standing: Standing = {}
    found: dict[tuple[str, int, int], Known] = {}
    for each in _rows_of(ledger, bucket_ms, hashes, ts):
        key = _follow(standing, each, bucket_ms)
        found[key] = Known(each.sequence, bool(standing[key]))
    return found


def _follow(standing: Standing, each: Candidate, bucket_ms: int) -> tuple[str, int, int]:
    """Applies one row; returns the input that it is about."""
    assert each.trade is not None
    key = each.tx_hash, each.index, each.ts // bucket_ms
    held = standing.setdefault(key, {})
    held.pop(each.ts, None)
    if each.op is Op.ADD:
        held[each.ts] = each.trade
    return key


def _rows_of(
    ledger: Ledger,
    bucket_ms: int,
    hashes: pa.Array,
    ts: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> Iterator[Candidate]:
    """Rows of these transactions in the buckets of these times, in order within a bucket."""
    wanted: pa.Array | None = None
    for window in _windows(ledger, ts, bucket_ms):
        rows = ledger.rows(window.from_ms, window.to_ms)
        wanted = hashes.unique() if wanted is None else wanted
        rows = rows.filter(pc.is_in(rows["tx_hash"], value_set=wanted))
        yield from sorted(trades_of(rows), key=lambda row: row.sequence)


def trades_of(rows: pa.Table, outcome: Outcome | None = None) -> Iterator[Candidate]:
    """Ledger rows one at a time."""
    names = ("sequence", "input", "op", "tx_hash", "ts", "pair")
    columns = (rows[name].to_pylist() for name in names)
    wides = (uint256.to_ints(uint256.from_arrow(rows[name])) for name in ("price", "base", "quote"))
    for sequence, index, op, tx_hash, ts, pair, *amounts in zip(*columns, *wides, strict=True):
        trade = CanonicalTrade(parse_pair(pair), ts, *amounts)
        yield Candidate(sequence, index, Op(op), tx_hash, ts, trade, outcome or Outcome.ADDED)


def _windows(
    ledger: Ledger, ts: np.ndarray[tuple[int], np.dtype[np.int64]], bucket_ms: int
) -> tuple[Interval, ...]:
    """The buckets of these times, as far as any segment reaches into them."""
    begins = np.unique(ts // bucket_ms) * bucket_ms
    held = np.zeros(len(begins), dtype=bool)
    for segment in ledger.segments:
        if segment.rows:
            held |= (begins < segment.to_ms) & (begins + bucket_ms > segment.from_ms)
    return union(Interval(begin, begin + bucket_ms) for begin in begins[held].tolist())
