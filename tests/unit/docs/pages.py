"""The project's pages, and their tables."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PROGRAMS = ("api", "collector", "migrations", "workers")


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def section(text: str, heading: str) -> str:
    """From a heading to the next one of its kind or above."""
    level = heading.split(" ")[0]
    _, _, rest = text.partition(f"\n{heading}\n")
    assert rest, f"there is no {heading!r}"
    return re.split(rf"\n#{{1,{len(level)}}} ", rest)[0]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without headings and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rules = [at for at, line in enumerate(lines) if set(line) <= set("|- ")]
    left_out = {*rules, *(at - 1 for at in rules)}
    kept = [line for at, line in enumerate(lines) if at not in left_out]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in kept]


def words(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


def sources() -> dict[str, str]:
    """Every file of the programs, by its path."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for program in PROGRAMS
        for path in sorted((ROOT / program).rglob("*.py"))
    }
