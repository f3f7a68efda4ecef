"""A lake with every kind of file, and random damage to any of them.

After each damage the lake is read by a new process: every bar that a read returns is the exchange's
own, and a slot that lacks its bar is `missing`, or the read fails and names the file. Then `repair`
sets the damage aside, what it lost is stored again as a job would, and the lake must be complete.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.clock import ManualClock
from collector.market.answer import Rejected
from collector.market.interval import Interval, subtract
from collector.market.trade import Trade
from collector.store import compaction, derived, part, segment, snapshot, trade_day
from collector.store.copies import DEFAULT_TIMEFRAMES, Copies
from collector.store.page import Page
from collector.store.port import Corrupt
from collector.store.quarantine import quarantined
from collector.store.repair import repair, repair_groups
from collector.store.store import Store
from collector.store.trades import append_trades, read_trades
from tests.support.bars import BTC, ETH, at, bars, span

if TYPE_CHECKING:
    import random
    from pathlib import Path

    import pyarrow as pa
    import pytest

    from collector.market.series import Series

SLOTS = 400
SEALED_SLOTS = 300
"""So many are sealed; the others lie in parts."""
WHOLE = Interval(at(0), at(SLOTS))
TRUTH = {slot: 50.0 + slot for slot in range(SLOTS) if slot % 7}
TRADES = [Trade(str(n), at(0) + n, 1.0 + n, 1.0, "buy") for n in range(200)]
COPIES = Copies(DEFAULT_TIMEFRAMES, tail_days=1)


@dataclass
class Tally:
    """What came of the damages."""

    damages: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    """Reads that failed and named the file."""
    missing: int = 0
    """Times that bars were reported as missing."""
    harmless: int = 0
    """Everything was there: only a copy or a checksum was hit."""


KINDS = {
    "checksum",
    "copy",
    "group part",
    "page part",
    "quarantine",
    "sealed",
    "tail",
    "trades",
    "versions",
}


def make_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small row groups. The machine stays on: syncing would only be slow."""
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    for module in (segment, part, snapshot, compaction, derived):
        monkeypatch.setattr(module, "ROWS_PER_GROUP", 60)
    monkeypatch.setattr(trade_day, "ROWS_PER_BATCH", 50)


def opened(root: Path) -> Store:
    return Store(root, clock=ManualClock(1_700_000_000_000), copies=COPIES)


def fill(root: Path) -> None:
    """Sealed files with versions and copies, parts of both kinds, refused rows, and trades."""
    store = opened(root)
    for series in (BTC, ETH):
        _tell(store, series, 0, SEALED_SLOTS, known_at=1, more=1.0)
        _tell(store, series, 0, SEALED_SLOTS, known_at=2)
        store.compact(series)
    half = (SEALED_SLOTS + SLOTS) // 2
    for series in (BTC, ETH):
        _tell(store, series, SEALED_SLOTS, half, known_at=3)
    for start in range(half, SLOTS, 10):
        pages = [
            Page.of(each, _told(start, start + 10), span(start, start + 10), fence=1, known_at=4)
            for each in (BTC, ETH)
        ]
        store.append_group(pages)
    store.quarantine(BTC, [Rejected("ohlc", at(7), (at(7), 1, 1))], fence=1, known_at=1)
    append_trades(store.storage, "binance", "BTC/USDT", TRADES, known_at=1)


def strike(root: Path, file: Path, rng: random.Random) -> str:
    """One flipped bit, or the end cut off; returns what was done."""
    data = bytearray(file.read_bytes())
    if not data or rng.random() < 0.25:
        cut = rng.randrange(len(data)) if data else 0
        file.write_bytes(bytes(data[:cut]))
        return f"{file.relative_to(root)} cut to {cut}"
    # Half of the flips hit the end, where a footer is.
    low = max(0, len(data) - 4096) if rng.random() < 0.5 else 0
    place = rng.randrange(low, len(data))
    data[place] ^= 1 << rng.randrange(8)
    file.write_bytes(bytes(data))
    return f"{file.relative_to(root)} byte {place}"


def storm(pristine: Path, root: Path, damages: int, rng: random.Random) -> Tally:
    """So many damages, one at a time, each on a fresh copy of the lake."""
    tally = Tally()
    files = [each.relative_to(pristine) for each in pristine.rglob("*") if each.is_file()]
    kinds: dict[str, list[Path]] = {}
    for each in sorted(path for path in files if not path.name.startswith(".")):
        kinds.setdefault(_kind(each), []).append(each)
    for number in range(damages):
        kind = sorted(kinds)[number % len(kinds)]
        shutil.copytree(pristine, root)
        what = strike(root, root / rng.choice(kinds[kind]), rng)
        tally.damages += 1
        tally.by_kind[kind] += 1
        check_no_silent_loss(root, what, tally)
        check_brought_back(root, what)
        shutil.rmtree(root)
    return tally


def check_no_silent_loss(root: Path, what: str, tally: Tally) -> None:
    """Whatever is read is true, and whatever is lost is reported."""
    lost = False
    for series in (BTC, ETH):
        store = opened(root)
        for merged in (False, True):
            try:
                if merged:
                    store.compact(series)
                lost = _check_true(store.rows(series, at(0), at(SLOTS)), what) or lost
            except Corrupt:
                tally.refused += 1
                lost = True
    store = opened(root)
    try:
        read = read_trades(store.storage, "binance", "BTC/USDT", 0, 2**52)["id"].to_pylist()
        assert read == [each.id for each in TRADES], what
        assert quarantined(store.storage, BTC)["reason"].to_pylist() in (["ohlc"], []), what
    except Corrupt:
        lost = True
    tally.missing += lost
    tally.harmless += not lost


def check_brought_back(root: Path, what: str) -> None:
    """`repair`, and then the jobs that it makes: everything is as it was."""
    store = opened(root)
    repair_groups(store, "binance")
    for series in (BTC, ETH):
        repair(store, "binance", series.symbol)
        for hole in subtract([WHOLE], store.covered(series)):
            first, end = ((ms - at(0)) // 60_000 for ms in (hole.from_ms, hole.to_ms))
            _tell(store, series, first, end, known_at=5)
        store.compact(series)
        table = opened(root).rows(series, at(0), at(SLOTS))
        assert not _check_true(table, what), what
        assert not [row for row in table["gap_reason"].to_pylist() if row == "missing"], what
    again = opened(root)
    ids = {each.id for each in TRADES}
    assert ids.issuperset(
        read_trades(again.storage, "binance", "BTC/USDT", 0, 2**52)["id"].to_pylist()
    )
    assert not repair_groups(again, "binance"), what
    assert not [each for s in (BTC, ETH) for each in repair(again, "binance", s.symbol)], what


def _check_true(table: pa.Table, what: str) -> bool:
    """Whether bars are missing. Fails when a bar is wrong, or a lost one reads as no trade."""
    slots = (table["ts"].to_numpy() - at(0)) // 60_000
    told = dict(zip(slots.tolist(), _rows(table), strict=True))
    for slot, (price, is_gap, reason) in told.items():
        if not is_gap:
            # Neither another bar nor an older version of it.
            assert price == TRUTH.get(slot), what
        elif slot in TRUTH:
            assert reason == "missing", what
    lacking = [slot for slot in TRUTH if told.get(slot, (0, True, ""))[1]]
    return bool(lacking)


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = (table[name].to_pylist() for name in ("o", "is_gap", "gap_reason"))
    return list(zip(*columns, strict=True))


def _told(first: int, end: int, more: float = 0.0) -> Any:
    return bars({slot: TRUTH[slot] + more for slot in range(first, end) if slot in TRUTH})


def _tell(
    store: Store, series: Series, first: int, end: int, *, known_at: int, more: float = 0.0
) -> None:
    told = _told(first, end, more)
    store.append_page(series, told, span(first, end), fence=1, known_at=known_at)


def _kind(path: Path) -> str:
    parts = path.parts
    if path.suffix == ".sha256":
        return "checksum"
    if len(parts) == 3 and parts[1] == "parts":
        return "group part"
    if len(parts) > 3:
        return {"parts": "page part"}.get(parts[2], parts[2])
    return "sealed" if path.name == "1m.parquet" else "copy"
