"""What `collector doctor` prints."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from collector.cli.database import keep_quiet
from collector.cli.output import Output, cell
from collector.operations.doctor.examination import examine
from collector.operations.doctor.finding import Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.cli.verb import Asked
    from collector.operations.deployment import Deployment
    from collector.operations.doctor.finding import Finding

PROBLEM = 1
"""The exit code when there is a problem."""
_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


async def examined(asked: Asked, *, ask: bool) -> Output:
    def read() -> Deployment:
        where = asked.deployment()
        keep_quiet(where.settings)
        return where

    found = await examine(read, ask=ask)
    bad = any(each.level is Level.PROBLEM for each in found)
    facts = {"ok": not bad, "findings": [asdict(each) for each in found]}
    return Output(facts, Group(*_lines(found)), exit_code=PROBLEM if bad else 0)


def _lines(found: Sequence[Finding]) -> Iterator[Text]:
    width = max(len(each.area) for each in found)
    for each in found:
        start = Text(f"{each.level.value:<8}", style=_COLOURS[each.level])
        yield start.append(f"{each.area:<{width}}  ", style="default").append(cell(each.message))
        if each.help:
            yield Text(f"{'':<{8 + width}}  -> {each.help}")
    counts = Counter(each.level for each in found)
    yield Text("")
    words = (f"{counts[level]} {level.value}{_plural(level, counts[level])}" for level in Level)
    yield Text(", ".join(words))


def _plural(level: Level, count: int) -> str:
    return "" if level is Level.OK or count == 1 else "s"
