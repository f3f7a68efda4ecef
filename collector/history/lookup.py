"""Trades in the ledger that deletions are about, found in the windows of their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.history import uint256
from collector.history.event import CanonicalTrade, Op
from collector.history.segment import parse_pair
from collector.market.interval import Interval, union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.history.judging import Candidate, TradeKey
    from collector.history.ledger import Ledger


def standing_trades(
    ledger: Ledger, bucket_ms: int, deletions: Sequence[Candidate]
) -> dict[TradeKey, CanonicalTrade]:
    """The trades of these inputs and times that were added and not deleted."""
    hashes = pa.array([each.tx_hash for each in deletions], pa.string()).unique()
    ts = np.array([each.ts for each in deletions], dtype=np.int64)
    standing: dict[TradeKey, CanonicalTrade] = {}
    for window in _windows(ledger, ts, bucket_ms):
        rows = ledger.rows(window.from_ms, window.to_ms)
        rows = rows.filter(pc.is_in(rows["tx_hash"], value_set=hashes))
        for key, op, trade in _in_sequence(rows):
            standing.pop(key, None)
            if op is Op.ADD:
                standing[key] = trade
    return standing


def _in_sequence(rows: pa.Table) -> Iterator[tuple[TradeKey, Op, CanonicalTrade]]:
    """Ledger rows one at a time."""
    rows = rows.sort_by("sequence")
    names = ("tx_hash", "input", "op", "ts", "pair")
    columns = (rows[name].to_pylist() for name in names)
    wides = (uint256.to_ints(uint256.from_arrow(rows[name])) for name in ("price", "base", "quote"))
    for tx_hash, index, op, ts, pair, *amounts in zip(*columns, *wides, strict=True):
        yield (tx_hash, index, ts), Op(op), CanonicalTrade(parse_pair(pair), ts, *amounts)


def _windows(
    ledger: Ledger, ts: np.ndarray[tuple[int], np.dtype[np.int64]], bucket_ms: int
) -> tuple[Interval, ...]:
    """The buckets of these times, as far as any segment reaches into them.

    One read for all that lie in one bucket, and none twice.
    """
    begins = np.unique(ts // bucket_ms) * bucket_ms
    held = np.zeros(len(begins), dtype=bool)
    for segment in ledger.segments:
        if segment.rows:
            held |= (begins < segment.to_ms) & (begins + bucket_ms > segment.from_ms)
    return union(Interval(begin, begin + bucket_ms) for begin in begins[held].tolist())
