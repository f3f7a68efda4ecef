"""The logs of the programs that `collector up` starts: where they are, their last lines, new ones.

A line is one JSON object. What a program printed otherwise, such as a traceback, is kept as text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LEVELS = ("debug", "info", "warning", "error", "critical")
MONGOD = "mongod"
_BLOCK = 65_536
_MONGOD_LEVELS = {"F": "critical", "E": "error", "W": "warning", "I": "info", "D": "debug"}


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of one program."""

    program: str
    fields: dict[str, Any]

    @classmethod
    def read(cls, program: str, text: str) -> LogLine:
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            return cls(program, {"event": text})
        return cls(program, _of_mongod(fields) if "msg" in fields and "t" in fields else fields)

    @property
    def at(self) -> str:
        """Its time, or nothing for text."""
        return str(self.fields.get("timestamp") or "")


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which lines: at least of a level, of an exchange, of a job."""

    level: str | None = None
    exchange_id: str | None = None
    job: str | None = None

    def takes(self, line: LogLine) -> bool:
        fields = line.fields
        if self.level is not None and "level" in fields:
            known = fields["level"] in LEVELS
            if known and LEVELS.index(fields["level"]) < LEVELS.index(self.level):
                return False
        if self.exchange_id is not None and self.exchange_id not in (
            fields.get("exchange"),
            fields.get("exchange_id"),
        ):
            return False
        return self.job is None or str(fields.get("job") or "").startswith(self.job)


def _of_mongod(fields: dict[str, Any]) -> dict[str, Any]:
    """A line of MongoDB's own log by the names that ours have."""
    at = fields["t"].get("$date") if isinstance(fields["t"], dict) else fields["t"]
    level = _MONGOD_LEVELS.get(str(fields.get("s"))[:1], "info")
    more = fields.get("attr") or {}
    return {"timestamp": at, "level": level, "event": fields["msg"], **more}


def log_files(folder: Path, programs: Sequence[str] = ()) -> dict[str, Path]:
    """The logs by program: those that are named, else all but MongoDB's own."""
    found = {path.stem: path for path in sorted(folder.glob("*.log"))}
    if not programs:
        return {name: path for name, path in found.items() if name != MONGOD}
    return {name: path for name, path in found.items() if name in programs}


def last_lines(files: dict[str, Path], chosen: LogFilter, count: int) -> list[LogLine]:
    """The newest lines of all of them, the oldest first."""
    merged: list[tuple[str, LogLine]] = []
    for program, path in files.items():
        lines: list[LogLine] = []
        for text in _backwards(path):
            line = LogLine.read(program, text)
            if chosen.takes(line):
                lines.append(line)
                if len(lines) >= count:
                    break
        at = ""
        for line in reversed(lines):
            at = line.at or at  # Text belongs to the line before it.
            merged.append((at, line))
    merged.sort(key=lambda each: each[0])
    return [line for _, line in merged[-count:]]


@dataclass(slots=True)
class LogFollower:
    """What is added to logs from now on. A file that was replaced begins anew."""

    files: dict[str, Path]
    chosen: LogFilter
    _reached: dict[str, tuple[int, int]] = field(default_factory=dict)
    _held: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for program, path in self.files.items():
            self._reached[program] = _size(path)

    def new_lines(self) -> list[LogLine]:
        """Whole lines since the last call."""
        found = [
            line
            for program, path in self.files.items()
            for line in self._of(program, path)
            if self.chosen.takes(line)
        ]
        return sorted(found, key=lambda line: line.at)

    def _of(self, program: str, path: Path) -> Iterator[LogLine]:
        inode, size = _size(path)
        known, reached = self._reached[program]
        start = reached if inode == known and size >= reached else 0
        if size == start:
            return
        with path.open("rb") as file:
            file.seek(start)
            *whole, rest = (self._held.pop(program, b"") + file.read(size - start)).split(b"\n")
        self._reached[program], self._held[program] = (inode, size), rest
        for text in whole:
            yield LogLine.read(program, text.decode("utf-8", "replace"))


def _size(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_ino, found.st_size


def _backwards(path: Path) -> Iterator[str]:
    """The lines of a file, the last first, without reading more than is asked for."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        end, rest = file.seek(0, 2), b""
        while end > 0:
            start = max(0, end - _BLOCK)
            file.seek(start)
            first, *whole = (file.read(end - start) + rest).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in reversed(whole) if line)
            end, rest = start, first
        if rest:
            yield rest.decode("utf-8", "replace")
