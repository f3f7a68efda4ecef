"""The journal of requests, in memory and in a file that outlives its exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.simulated.journal import Journal, JournalEntry, read_journal

if TYPE_CHECKING:
    from pathlib import Path


def arrive(journal: Journal, at_ms: float, path: str = "/api/v3/klines") -> int:
    seq = journal.next_seq
    journal.arrive(JournalEntry(seq, at_ms, "GET", path, symbol="BTCUSDT", weight=2))
    return seq


def test_an_entry_is_there_from_its_arrival_and_learns_its_answer() -> None:
    journal = Journal()
    seq = arrive(journal, 1000.5)
    assert journal.since()[0].status == 0
    journal.answer(seq, 200, 1003.75, rows=7, faults=("latency",))
    (entry,) = journal.since()
    assert (entry.status, entry.rows, entry.faults, entry.took_ms) == (200, 7, ("latency",), 3.25)


def test_it_is_read_in_pages() -> None:
    journal = Journal()
    for at in range(5):
        arrive(journal, float(at))
    first = journal.since(0, limit=3)
    assert [entry.seq for entry in first] == [1, 2, 3]
    assert [entry.seq for entry in journal.since(first[-1].seq)] == [4, 5]


def test_clearing_forgets_but_numbers_go_on() -> None:
    journal = Journal()
    before = arrive(journal, 0.0)
    journal.clear()
    journal.answer(before, 200, 1.0)
    assert journal.since() == []
    assert arrive(journal, 2.0) == 2
    assert [entry.seq for entry in journal.since()] == [2]


def test_the_oldest_are_forgotten_when_it_is_full() -> None:
    journal = Journal(capacity=8)
    for at in range(100):
        journal.answer(arrive(journal, float(at)), 200, float(at))
    kept = journal.since()
    assert 8 <= len(kept) <= 9
    assert kept[-1] == JournalEntry(
        100, 99.0, "GET", "/api/v3/klines", "BTCUSDT", weight=2, status=200, took_ms=0.0
    )
    assert [entry.seq for entry in journal.since(98)] == [99, 100]


def test_the_summary_counts_and_judges() -> None:
    journal = Journal()
    for at in (0.0, 10.0, 20.0, 5000.0):
        journal.answer(arrive(journal, at), 200, at)
    arrive(journal, 5001.0, "/api/v3/time")
    summary = journal.summary(limit=2, period_ms=1000)
    assert summary["requests"] == 5
    assert summary["by_status"] == {"200": 4, "0": 1}
    assert summary["by_path"] == {"/api/v3/klines": 4, "/api/v3/time": 1}
    assert (summary["max_in_window"], summary["violations"]) == (3, 1)
    assert "violations" not in journal.summary()


def test_the_file_outlives_a_kill_and_the_next_exchange_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.answer(arrive(journal, 1.0), 200, 2.0, rows=3)
    arrive(journal, 4.0)
    # What is on disk now is what a kill would leave, but for a torn line.
    with path.open("ab") as file:
        file.write(b'{"seq":3,"at_')
    journal.close()

    again = Journal(path)
    assert again.next_seq == 3
    arrive(again, 9.0)
    again.close()
    entries = read_journal(path)
    assert [(entry.seq, entry.at_ms, entry.status) for entry in entries] == [
        (1, 1.0, 200),
        (2, 4.0, 0),
        (3, 9.0, 0),
    ]
    assert entries[0].rows == 3
