"""What `collector logs` does."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.cli.output import Output, cell, show_lines, table, to_json
from collector.cli.verb import given
from collector.errors import NotFound
from collector.market.near import did_you_mean
from collector.operations.process_logs import LogFilter, LogFollower, last_lines, log_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from collector.cli.verb import Asked
    from collector.operations.process_logs import LogLine

LOOK_SECONDS = 0.3
_BEFORE = ("timestamp", "level", "event")
_UNTOLD = frozenset({*_BEFORE, "logger"})


@dataclass(frozen=True, slots=True)
class WantedLines:
    """What was typed."""

    programs: Sequence[str]
    tail: int
    level: str | None
    exchange_id: str | None
    job: str | None

    def filter(self) -> LogFilter:
        return LogFilter(self.level, self.exchange_id, self.job)


def show(asked: Asked, wanted: WantedLines, *, follow: bool) -> None:
    """Prints the last lines; with `follow` then every new one, until it is interrupted."""
    files, chosen = _files(asked, wanted), wanted.filter()
    follower = LogFollower(files, chosen)
    lines = last_lines(files, chosen, wanted.tail) if wanted.tail else []
    if not follow and asked.json:
        places = {name: str(path) for name, path in files.items()}
        given(asked, Output({"files": places, "items": [_facts(line) for line in lines]}, ""))
        return
    _print(asked, lines)
    while follow:
        time.sleep(LOOK_SECONDS)
        _print(asked, follower.new_lines())


def show_places(asked: Asked, wanted: WantedLines) -> None:
    files = _files(asked, wanted)
    rows = [(name, path, f"{path.stat().st_size:,}") for name, path in files.items()]
    facts = {"files": {name: str(path) for name, path in files.items()}}
    given(asked, Output(facts, table(("program", "file", "bytes"), rows, right="bytes")))


def _files(asked: Asked, wanted: WantedLines) -> dict[str, Path]:
    """NotFound names the programs that have a log."""
    folder = asked.here("logs").settings.home / "logs"
    files = log_files(folder, wanted.programs)
    everything = log_files(folder, ()) | log_files(folder, ["mongod"])
    unknown = [name for name in wanted.programs if name not in files]
    if unknown:
        hint = did_you_mean(unknown[0], everything) or f"; there are {', '.join(everything)}"
        raise NotFound(f"{folder} has no log of {unknown[0]!r}{hint if everything else ''}")
    if not files:
        raise NotFound(f"there are no logs in {folder}: `collector up` writes them")
    return files


def _print(asked: Asked, lines: Sequence[LogLine]) -> None:
    if asked.json:
        for line in lines:
            print(to_json(_facts(line)), flush=True)
    else:
        show_lines(line_words(line) for line in lines)


def _facts(line: LogLine) -> dict[str, Any]:
    return {"program": line.program, **line.fields}


def line_words(line: LogLine) -> str:
    """`2025-01-01 12:00:00.123 warning worker-1 run_retries exchange=binance error=...`."""
    fields = line.fields
    at = line.at.replace("T", " ")[:23]
    event = str(fields.get("event", ""))
    words = [at, str(fields.get("level") or ""), line.program, cell(event).plain]
    words += [
        f"{name}={cell(value).plain}" for name, value in fields.items() if name not in _UNTOLD
    ]
    return " ".join(word for word in words if word)
