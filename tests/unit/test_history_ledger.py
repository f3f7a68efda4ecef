"""The ledger's files: windows, merges, and listings that raced with one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from collector.history import ledger_files, segment, segment_shelf
from collector.history.event import Op
from collector.history.ledger_files import LedgerFiles, in_sequence
from collector.history.segment import LedgerSegment, ledger_rows, parse_segment
from collector.history.uint256 import to_ints
from collector.store.port import Swapped
from tests.support.history_trades import MINUTE, at, trade

if TYPE_CHECKING:
    from pathlib import Path

    from collector.history.ledger import Ledger
    from tests.support.lakes import Lake

FOLDER = "_history/n/ledger"


def filled(files: LedgerFiles, minutes: list[float], batch: int = 1) -> Ledger:
    """A ledger with a trade at each of these minutes, in that order; hashes are their numbers."""
    ledger = files.view()
    for first in range(0, len(minutes), batch):
        part = minutes[first : first + batch]
        rows = [
            (first + n + 1, 0, Op.ADD, str(first + n + 1), trade(minute, 1 + n % 5))
            for n, minute in enumerate(part)
        ]
        ledger = files.append(ledger, first + len(part), ledger_rows(rows))
    return ledger


def hashes(ledger: Ledger, from_minute: float, to_minute: float) -> list[str]:
    rows: list[str] = ledger.rows(at(from_minute), at(to_minute))["tx_hash"].to_pylist()
    return rows


def test_a_window_has_its_trades_by_time_and_position(lake: Lake) -> None:
    files = LedgerFiles(lake.storage(), FOLDER)
    ledger = filled(files, [5, 1, 2, 1, 3, 0], batch=2)
    assert hashes(ledger, 1, 3) == ["2", "4", "3"]
    assert hashes(files.view(), 1, 3) == ["2", "4", "3"]
    assert ledger.span == (at(0), at(5) + 1)
    assert hashes(ledger.through(3), 0, 9) == ["2", "3", "1"]


def test_a_deletion_takes_its_trade_out_of_its_window(lake: Lake) -> None:
    files = LedgerFiles(lake.storage(), FOLDER)
    ledger = filled(files, [0, 0, 1])
    gone = trade(0, 1)
    ledger = files.append(ledger, 4, ledger_rows([(4, 0, Op.DELETE, "1", gone)]))
    assert hashes(ledger, 0, 1) == ["1", "2", "1"]
    assert len(ledger.trades(at(0), at(2))) == 2
    again = trade(0, 7)
    ledger = files.append(ledger, 5, ledger_rows([(5, 0, Op.ADD, "1", again)]))
    assert to_ints(ledger.trades(at(0), at(1)).price) == [trade(0, 1).price, again.price]
    assert len(ledger.through(3).trades(at(0), at(2))) == 3


def test_merging_changes_nothing_anyone_reads(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_files, "FAN", 3)
    monkeypatch.setattr(segment, "ROWS_PER_GROUP", 4)
    monkeypatch.setattr(segment_shelf, "SMALL", 5)
    chance = random.Random(4)
    minutes = [chance.randrange(50) for _ in range(60)]
    plain = filled(LedgerFiles(lake.beside("plain").storage(), FOLDER), minutes)
    files = LedgerFiles(lake.beside("merged").storage(), FOLDER)
    ledger = files.view()
    for n, each in enumerate(minutes, start=1):
        ledger = files.append(ledger, n, ledger_rows([(n, 0, Op.ADD, str(n), trade(each, 1))]))
        ledger = files.merged(ledger)
        assert len(ledger.segments) < 15
    assert len(files.storage.names(FOLDER)) == len(ledger.segments)
    for view in (ledger, files.view(), LedgerFiles(files.storage, FOLDER).view()):
        assert view.head == 60
        for window in ((0, 50), (7, 8), (20, 31)):
            assert hashes(view, *window) == hashes(plain, *window)
        since = [n for _, table in view.since(40) for n in table["sequence"].to_pylist()]
        assert sorted(since) == list(range(41, 61))


def test_a_merge_that_died_before_it_deleted_counts_nothing_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_files, "FAN", 3)
    files = LedgerFiles(lake.storage(), FOLDER)
    ledger = filled(files, [0, 1, 2, 3])
    monkeypatch.setattr(type(files.storage), "delete", lambda self, path: None)
    files.merged(ledger)
    monkeypatch.undo()
    assert len(files.storage.names(FOLDER)) == 5
    view = files.view()
    assert hashes(view, 0, 9) == ["1", "2", "3", "4"]
    files.sweep(view)
    assert len(files.storage.names(FOLDER)) == 1


def test_a_listing_that_misses_a_segment_is_taken_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LedgerFiles(lake.storage(), FOLDER)
    filled(files, [0, 1, 2])
    whole = files.storage.names(FOLDER)
    listings = [[whole[0], whole[2]], whole[:2], whole]
    monkeypatch.setattr(files.storage, "names", lambda folder: listings.pop(0))
    assert hashes(files.view(at_least=3), 0, 9) == ["1", "2", "3"]
    monkeypatch.setattr(files.storage, "names", lambda folder: whole[1:])
    with pytest.raises(Swapped):
        files.view()


def test_segments_that_overlap_count_every_sequence_once() -> None:
    def made(first: int, last: int) -> LedgerSegment:
        return LedgerSegment(f"{first}-{last}", first, last, 0, 1, 1, first - 1)

    chosen = in_sequence([made(1, 4), made(1, 2), made(3, 3), made(3, 6), made(7, 7)])
    assert chosen is not None
    assert [(each.path, each.after) for each in chosen] == [("1-4", 0), ("3-6", 4), ("7-7", 6)]
    assert in_sequence([made(2, 3)]) is None
    assert in_sequence([]) == ()


def test_rows_that_two_segments_have_are_read_once(lake: Lake) -> None:
    """A writer that was overtaken may repeat what another one has written already."""
    files = LedgerFiles(lake.storage(), FOLDER)
    rows = [(n, 0, Op.ADD, str(n), trade(n, 1)) for n in range(1, 7)]
    files.append(files.view(), 4, ledger_rows(rows[:4]))
    files.append(files.view().through(2), 6, ledger_rows(rows[2:]))
    view = files.view()
    assert hashes(view, 0, 9) == ["1", "2", "3", "4", "5", "6"]
    since = [n for _, table in view.since(2) for n in table["sequence"].to_pylist()]
    assert since == [3, 4, 5, 6]


def test_files_that_are_no_segments_are_passed_by() -> None:
    for name in ("x.parquet", "1-2-3.parquet", "1-2-3-4-5-ab.txt", ".1-2-3-4-5-ab.parquet.tmp"):
        assert parse_segment("f", name) is None


def test_a_window_reads_its_own_row_groups_whatever_the_ledgers_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from collector.store.disk import LocalDisk

    monkeypatch.setattr(segment, "ROWS_PER_GROUP", 16)
    monkeypatch.setattr(segment_shelf, "SMALL", 16)
    read = []
    original = segment_shelf._cut

    def counting(table: Any, from_ms: int, to_ms: int) -> Any:
        read.append(len(table))
        return original(table, from_ms, to_ms)

    monkeypatch.setattr(segment_shelf, "_cut", counting)
    costs = []
    for length in (200, 4_000):
        files = LedgerFiles(LocalDisk(tmp_path / str(length)), FOLDER)
        ledger = filled(files, [n / 4 for n in range(length)], batch=100)
        read.clear()
        assert len(ledger.trades(at(30), at(31))) == 4
        costs.append(sum(read))
    assert costs[0] == costs[1] <= 32


def test_the_ledger_is_plain_parquet_with_32_byte_integers(lake: Lake) -> None:
    files = LedgerFiles(lake.storage(), FOLDER)
    filled(files, [0])
    (name,) = files.storage.names(FOLDER)
    table = lake.table(f"{FOLDER}/{name}")
    (row,) = table.to_pylist()
    assert row["price"] == trade(0, 1).price.to_bytes(32, "big")
    assert (row["op"], row["ts"], row["sequence"]) == ("a", at(0), 1)
    assert str(table.schema.field("quote").type) == "fixed_size_binary[32]"
    assert at(0) + MINUTE == at(1)
