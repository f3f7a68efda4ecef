"""What a mode shows: tables and lines of cells, each with a tone instead of a colour. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tone(StrEnum):
    PLAIN = ""
    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"
    FAINT = "faint"
    STRONG = "strong"


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Column:
    """`least` is the width of the terminal from which on the column is shown."""

    name: str
    right: bool = False
    least: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """A table. A row has a cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""

    def at(self, width: int) -> Grid:
        """With the columns that have room in so wide a terminal."""
        kept = [at for at, column in enumerate(self.columns) if column.least <= width]
        return Grid(
            tuple(self.columns[at] for at in kept),
            tuple(tuple(row[at] for at in kept) for row in self.rows),
            self.title,
        )


@dataclass(frozen=True, slots=True)
class Sheet:
    """One mode's whole content."""

    title: str
    lines: tuple[tuple[Cell, ...], ...] = ()
    grids: tuple[Grid, ...] = ()


def columns(text: str) -> tuple[Column, ...]:
    """From a short form: `name`, `>name` for numbers, `name@120` from a width of 120 on."""
    made = []
    for part in text.split("|"):
        name, _, least = part.strip().partition("@")
        made.append(Column(name.removeprefix(">"), name.startswith(">"), int(least or 0)))
    return tuple(made)


def row(*cells: Cell | str | float | None) -> tuple[Cell, ...]:
    """Cells from values; None is a dash."""
    return tuple(_cell(each) for each in cells)


def line(*cells: Cell | str) -> tuple[Cell, ...]:
    return tuple(each if isinstance(each, Cell) else Cell(each) for each in cells)


def _cell(value: Cell | str | float | None) -> Cell:
    if isinstance(value, Cell):
        return value
    if value is None or value == "":
        return Cell("-", Tone.FAINT)
    return Cell(value if isinstance(value, str) else f"{value:,}")


def texts(sheet: Sheet) -> str:
    """All text of a sheet, for tests and for a terminal without colours."""
    lines = ["".join(cell.text for cell in each) for each in sheet.lines]
    for grid in sheet.grids:
        lines += [grid.title, "  ".join(column.name for column in grid.columns)]
        lines += [_joined(each) for each in grid.rows]
    return "\n".join(lines)


def _joined(cells: Sequence[Cell]) -> str:
    return "  ".join(cell.text for cell in cells)
