"""Every request the exchange has seen, in order of arrival: proof of what was really sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from collector.simulated.windows import max_in_window, sliding_violations

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import FileIO
    from pathlib import Path


class JournalEntry(NamedTuple):
    """One request. `at_ms` is its arrival on the exchange's clock with fractions of a millisecond,
    and never runs backwards; `status` is 0 until (or unless) an answer leaves."""

    seq: int
    at_ms: float
    method: str
    path: str
    symbol: str | None = None
    interval: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    limit: int | None = None
    weight: int = 1
    violation: bool = False
    status: int = 0
    rows: int | None = None
    faults: tuple[str, ...] = ()
    took_ms: float | None = None


class Journal:
    """Keeps the newest `capacity` requests in memory and all of them in a file, when it has one.

    The file gets a line when a request arrives and another when its answer leaves, each written at
    once: what arrived stays known even if the exchange is killed, and numbers go on after it.
    """

    def __init__(self, path: Path | None = None, capacity: int = 1_000_000) -> None:
        self._entries: list[JournalEntry] = []
        self._capacity = capacity
        earlier = read_journal(path) if path is not None and path.exists() else []
        self._first_seq = earlier[-1].seq + 1 if earlier else 1
        self._file: FileIO | None = None if path is None else path.open("ab", buffering=0)
        if self._file is not None and self._file.tell():
            self._file.write(b"\n")  # Ends a line that a kill tore off.

    @property
    def next_seq(self) -> int:
        return self._first_seq + len(self._entries)

    def arrive(self, entry: JournalEntry) -> None:
        """Records a request. Its `seq` must be `next_seq`."""
        self._entries.append(entry)
        self._write(entry._asdict() if self._file else {})
        if len(self._entries) > self._capacity + self._capacity // 8:
            surplus = len(self._entries) - self._capacity
            del self._entries[:surplus]
            self._first_seq += surplus

    def answer(
        self,
        seq: int,
        status: int,
        at_ms: float,
        rows: int | None = None,
        faults: tuple[str, ...] = (),
    ) -> None:
        """Adds the outcome of a request."""
        self._write({"seq": seq, "status": status, "rows": rows, "faults": faults})
        place = seq - self._first_seq
        if 0 <= place < len(self._entries):  # Else it was cleared meanwhile.
            entry = self._entries[place]
            self._entries[place] = entry._replace(
                status=status,
                rows=rows,
                faults=faults,
                took_ms=round(at_ms - entry.at_ms, 3),
            )

    def since(self, seq: int = 0, limit: int | None = None) -> list[JournalEntry]:
        """The requests after number `seq`, oldest first."""
        start = max(0, seq + 1 - self._first_seq)
        return self._entries[start : None if limit is None else start + limit]

    def times(self) -> list[float]:
        """When each request arrived."""
        return [entry.at_ms for entry in self._entries]

    def clear(self) -> None:
        """Forgets what is in memory; numbers go on. The file stays."""
        self._first_seq = self.next_seq
        self._entries = []

    def summary(self, limit: int | None = None, period_ms: float | None = None) -> dict[str, Any]:
        """Counts; with a limit and a period also how full the fullest window was."""
        return summarise(self._entries, limit, period_ms)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, content: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(orjson.dumps(content) + b"\n")


def summarise(
    entries: list[JournalEntry], limit: int | None = None, period_ms: float | None = None
) -> dict[str, Any]:
    """The counts of a journal. `flagged` are requests the exchange itself objected to: over its
    limit, or during a ban."""
    times = [entry.at_ms for entry in entries]
    summary: dict[str, Any] = {
        "requests": len(entries),
        "by_status": _tally(str(entry.status) for entry in entries),
        "by_path": _tally(entry.path for entry in entries),
        "weight": sum(entry.weight for entry in entries),
        "flagged": sum(entry.violation for entry in entries),
        "first_ms": times[0] if times else None,
        "last_ms": times[-1] if times else None,
    }
    if period_ms is not None:
        summary["max_in_window"] = max_in_window(times, period_ms)
        if limit is not None:
            summary["violations"] = sliding_violations(times, limit, period_ms)
    return summary


def read_journal(path: Path) -> list[JournalEntry]:
    """The requests in a journal file, answers joined to them. Torn lines are left out."""
    entries: dict[int, JournalEntry] = {}
    for line in path.read_bytes().splitlines():
        try:
            content = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        content["faults"] = tuple(content["faults"])
        seq = content["seq"]
        if "at_ms" in content:
            entries[seq] = JournalEntry(**content)
        elif seq in entries:
            entries[seq] = entries[seq]._replace(**content)
    return [entries[seq] for seq in sorted(entries)]


def _tally(words: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts
