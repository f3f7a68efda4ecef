"""The output of a verb: the same facts as JSON for scripts and as text for users."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from collector.progress import console
from collector.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import RenderableType


@dataclass(frozen=True, slots=True)
class Output:
    """`facts` go to standard output with `--json`, `shown` without; `notes` to standard error."""

    facts: Mapping[str, Any]
    shown: RenderableType
    notes: Sequence[str] = ()
    failures: Sequence[Exception] = field(default=())
    """Errors of some items, when the others were done."""
    exit_code: int = 0
    """What the verb exits with when nothing failed."""


def to_json(facts: Mapping[str, Any]) -> str:
    """One line; dates as ISO 8601, ids as text."""
    return json.dumps(facts, default=_plain)


def show(shown: RenderableType, *, to_stderr: bool = False) -> None:
    """Prints for users: colours and the terminal's width only where there is a terminal."""
    made = console(to_stderr=to_stderr)
    made.print(Text(shown) if isinstance(shown, str) else shown)


def show_lines(lines: Iterable[str]) -> None:
    """Prints lines as they are, never folded, and lets them out at once."""
    made = console()
    for line in lines:
        made.print(Text(line), soft_wrap=True)
    made.file.flush()


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], right: str = "") -> Table:
    """A table without lines; columns named in `right` are numbers. The first is never cut."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for at, heading in enumerate(headings):
        justify = "right" if heading in right.split() else "left"
        made.add_column(heading, justify=justify, no_wrap=at == 0)  # type: ignore[arg-type]
    for row in rows:
        made.add_row(*(cell(value) for value in row))
    return made


def cell(value: object) -> Text:
    """A value from the database as text: no markup, and nothing that moves the cursor."""
    return Text("-" if value is None or value == "" else printable(str(value)))


def number(value: float | None) -> str | None:
    """As many digits as a price has, and the thousands apart."""
    return None if value is None else f"{value:,.10g}"


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        date = value if value.tzinfo else value.replace(tzinfo=UTC)
        return date.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)
