"""`python -m tests.bench.history_load TRADES FOLDER`: a process that fills a history and reports.

Prints a line of JSON early on and one after all trades: its peak memory so far, and the time it
took. 50,000,000 trades take some minutes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from collector.history import uint256
from collector.history.engine import PendingChange
from collector.history.pair import Asset, Pair
from collector.history.replay import prepare_rows
from collector.history.segment import LEDGER_SCHEMA
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH = 65_536
EARLY = 16 * BATCH
"""Trades by which everything has happened once: batches, merges, saves, a whole month."""
T0 = 1_704_067_200_000
STEP_MS = 3_000
"""Between two trades: twenty a minute over all pairs."""
NETWORK = "bench"
PAIRS = tuple(Pair.between(Asset.of(1, "AAA"), Asset.of(1, f"Q{number}")) for number in range(8))


def wide(chance: np.random.Generator, count: int, limbs: int) -> NDArray[np.uint64]:
    """Random numbers of that many limbs, the top one far from full, so that sums fit."""
    column = np.zeros((4, count), dtype=np.uint64)
    for limb in range(4 - limbs, 4):
        bits = 30 if limb == 4 - limbs else 63
        column[limb] = chance.integers(1, 1 << bits, count, dtype=np.uint64)
    return column


def generated(first: int, count: int, per_step: int = 1) -> pa.Table:
    """Additions with the sequences from `first` on, in the order of time."""
    chance = np.random.default_rng(first)
    sequence = np.arange(first, first + count)
    pairs = pa.DictionaryArray.from_arrays(
        pa.array(chance.integers(0, len(PAIRS), count, dtype=np.int32)),
        pa.array([str(pair) for pair in PAIRS]),
    )
    same = pa.DictionaryArray.from_arrays
    zeros = pa.array(np.zeros(count, dtype=np.int32))
    columns = [
        pa.array(sequence),
        zeros,
        same(zeros, pa.array(["a"])),
        pa.array([f"0x{number:064x}" for number in sequence.tolist()]),
        pa.array(T0 + sequence // per_step * STEP_MS),
        pairs,
        *(uint256.to_arrow(wide(chance, count, limbs)) for limbs in (1, 2, 2)),
    ]
    return pa.Table.from_arrays(columns, schema=LEDGER_SCHEMA)


def fill(writer: HistoryWriter, trades: int, per_step: int = 1) -> None:
    """Goes on from where the writer is, up to this many trades, by the column.

    Judging events one at a time is left out: it would take most of the time.
    """
    while (head := writer.applied_through) < trades:
        count = min(BATCH, trades - head)
        rows, state = generated(head + 1, count, per_step), writer._opened()
        change = PendingChange()
        prepare_rows(state.history, change, state.ledger, rows)
        writer._accept(state, rows, head + count, change)


def main() -> None:
    trades, folder = int(sys.argv[1]), sys.argv[2]
    writer = HistoryWriter(LocalDisk(folder), NETWORK)
    started = time.monotonic()
    for until in (min(EARLY, trades), trades):
        fill(writer, until)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        seconds = time.monotonic() - started
        print(json.dumps({"trades": until, "peak_mb": peak_mb, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
