"""Trade buckets: bulk appends, memory over many trades, restarts, rebuilds."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from collector.history.engine import History, PendingChange
from collector.history.event import CanonicalTrade, Event, Input, Op
from collector.history.segment import trade_columns
from collector.history.uint256 import SCALE
from collector.history.writer import HistoryWriter
from collector.store.disk import LocalDisk
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.history_load import BATCH, NETWORK, PAIRS, STEP_MS, T0, fill, generated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.history.trade_columns import TradeColumns

MOST_US = 1_000
FLAT = 1.25
BATCHES = {"long": 40, "short": 4}
MOST_MB = 500
LOCKED = 3
TAIL = 50_000
"""Trades after the last save: what a restart catches up with."""


async def run(bench: Bench) -> list[Figure]:
    trades = bench.pick(10_000_000, 2_000_000)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="collector-history-") as folder:
        long, short = Path(folder, "long"), Path(folder, "short")
        figures += await _memory(bench, long, trades)
        fill(HistoryWriter(LocalDisk(short), NETWORK), trades // 10)
        figures += await _restarts(bench, long, short, trades)
        figures += await _rebuilds(bench, long, short, Path(folder, "dense"))
    # Last: the peak of a process begins with that of the one that started it.
    return [*figures, *await _appends(bench), *await _locks(bench)]


def _append(history: History, trades: TradeColumns) -> None:
    change = PendingChange()
    history.prepare(change, trades)
    history.commit(change)


def _histories() -> dict[str, History]:
    """One, and another with a tenth of its buckets."""
    made = {}
    for name, batches in BATCHES.items():
        made[name] = History(60)
        for number in range(batches):
            _append(made[name], trade_columns(generated(number * BATCH + 1, BATCH)))
    return made


async def _appends(bench: Bench) -> list[Figure]:
    """A batch of a dozen trades a bucket, and single trades in histories of two lengths."""
    columns = trade_columns(generated(1, BATCH, per_step=5))
    histories = _histories()

    async def bulk() -> float:
        started = time.perf_counter()
        _append(History(60), columns)
        return (time.perf_counter() - started) / len(columns)

    async def single(name: str) -> float:
        late = T0 + BATCHES[name] * BATCH * STEP_MS
        trades = [CanonicalTrade(PAIRS[0], late + n, SCALE, 10, 10) for n in range(1_000)]
        started = time.perf_counter()
        for trade in trades:
            histories[name].append_trade(trade)
        return (time.perf_counter() - started) / len(trades)

    samples = await in_turn(
        {"a batch": bulk, **{name: partial(single, name) for name in histories}},
        rounds=bench.pick(9, 5),
        settled=lambda samples: ratio(samples, "long", "short") <= FLAT,
    )
    bench.show(
        f"one trade of {len(columns):,} in a batch, and one alone in two histories, us",
        ["", "median"],
        [[name, 1e6 * median(values)] for name, values in samples.items()],
    )
    return [
        Figure("history.append_trade", 1e6 * median(samples["long"]), " us", at_most=MOST_US),
        Figure(
            "history.append_trade, ten times the buckets",
            ratio(samples, "long", "short"),
            at_most=2,
        ),
    ]


async def _locks(bench: Bench) -> list[Figure]:
    """How long a batch keeps readers out, in a history and in one with ten times the buckets."""
    histories, late = _histories(), {name: count * BATCH for name, count in BATCHES.items()}

    async def held(name: str) -> float:
        history = histories[name]
        late[name] += 1_000
        timed = _TimedLock()
        history._lock = timed  # type: ignore[assignment]
        _append(history, trade_columns(generated(late[name], 1_000)))
        return timed.longest

    samples = await in_turn(
        {name: partial(held, name) for name in histories},
        rounds=bench.pick(21, 9),
        settled=lambda samples: ratio(samples, "long", "short") <= LOCKED,
    )
    bench.show(
        "readers are kept out by a batch of 1,000 trades, ms",
        ["history", "median", "worst"],
        [[name, *_ms(samples[name])] for name in histories],
    )
    grown = ratio(samples, "long", "short")
    return [Figure("history.lock held, ten times the buckets", grown, at_most=LOCKED)]


class _TimedLock:
    """A lock that knows for how long it was ever held."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = 0.0
        self.longest = 0.0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.longest = max(self.longest, time.perf_counter() - self._since)
        self._lock.release()


async def _memory(bench: Bench, folder: Path, trades: int) -> list[Figure]:
    """A process of its own, so that nobody else's memory is counted."""
    command = (sys.executable, "-m", "tests.bench.history_load", str(trades), str(folder))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    few, all_of_them = (json.loads(line) for line in said.splitlines())
    bench.show(
        "a writer that is given trades by the column",
        ["trades", "s", "trades / s", "peak MB"],
        [
            [
                f"{each['trades']:,}",
                each["seconds"],
                each["trades"] / each["seconds"],
                each["peak_mb"],
            ]
            for each in (few, all_of_them)
        ],
    )
    flat = all_of_them["peak_mb"] / few["peak_mb"]
    return [
        Figure(
            f"history.{trades:,} trades: peak memory",
            all_of_them["peak_mb"],
            " MB",
            at_most=MOST_MB,
        ),
        Figure(f"history.{trades:,} trades: peak / early on", flat, at_most=FLAT),
    ]


async def _restarts(bench: Bench, long: Path, short: Path, trades: int) -> list[Figure]:
    """A writer that finds a ledger, saved buckets, and some trades that came after the save."""
    for folder in (long, short):
        writer = HistoryWriter(LocalDisk(folder), NETWORK)
        writer.save()
        fill(writer, writer.applied_through + TAIL)

    async def opened(folder: Path) -> float:
        started = time.perf_counter()
        assert HistoryWriter(LocalDisk(folder), NETWORK).applied_through
        return time.perf_counter() - started

    samples = await in_turn(
        {"long": partial(opened, long), "short": partial(opened, short)},
        rounds=bench.pick(9, 5),
        settled=lambda samples: ratio(samples, "long", "short") <= 2,
    )
    bench.show(
        "from nothing to ready, ms",
        ["trades", "median", "worst"],
        [
            [f"{count:,}", 1e3 * median(samples[name]), 1e3 * max(samples[name])]
            for name, count in (("long", trades), ("short", trades // 10))
        ],
    )
    name = f"history.restart, {trades:,} trades"
    return [
        Figure(name, median(samples["long"]), " s", at_most=2),
        Figure(f"{name} / a tenth", ratio(samples, "long", "short"), at_most=2),
    ]


async def _rebuilds(bench: Bench, long: Path, short: Path, dense: Path) -> list[Figure]:
    """One bucket made again, in the middle of a ledger."""
    writers = {
        "long": (HistoryWriter(LocalDisk(long), NETWORK), 1),
        "short": (HistoryWriter(LocalDisk(short), NETWORK), 1),
        "dense": (HistoryWriter(LocalDisk(dense), NETWORK), 10),
    }
    fill(writers["dense"][0], 50_000, per_step=10)
    middles = {name: writer.applied_through // 2 for name, (writer, _) in writers.items()}

    async def rebuilt(name: str) -> float:
        writer, per_step = writers[name]
        middles[name] += 1
        writer.apply([(writer.applied_through + 1, _deletion(middles[name], per_step))])
        return writer.counters.last_rebuild_s

    samples = await in_turn(
        {name: partial(rebuilt, name) for name in writers}, rounds=bench.pick(21, 9)
    )
    assert all(writer.counters.rebuilds for writer, _ in writers.values())
    bench.show(
        "one bucket made again, ms",
        ["", "median", "worst"],
        [[name, *_ms(samples[name])] for name in writers],
    )
    return [
        Figure(
            "history.rebuild, a ledger ten times as long",
            ratio(samples, "long", "short"),
            at_most=2,
        ),
        Figure(
            "history.rebuild, ten times the trades", ratio(samples, "dense", "short"), at_most=12
        ),
    ]


def _deletion(sequence: int, per_step: int) -> Event:
    pair = PAIRS[0]
    any_input = Input(pair.base, pair.quote, 1, 1, 0, 1)
    ts = T0 + sequence // per_step * STEP_MS
    return Event(Op.DELETE, f"0x{sequence:064x}", ts, (any_input,))


def _ms(values: Sequence[float]) -> tuple[float, float]:
    return 1e3 * median(values), 1e3 * max(values)
