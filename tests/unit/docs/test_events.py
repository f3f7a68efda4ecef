"""What the programs log, against the table in docs/operations.md."""

from __future__ import annotations

import re

from collector.markets.changes import Kind
from tests.unit.docs.pages import page, rows, section, sources, words

LOGGED = re.compile(r'\b_?logs?\w*\.(debug|info|warning|error|exception)\(\s*"([a-z_]+)"')
MARKETS = {f"market_{kind.value}" for kind in Kind}
"""Named by what happened to the market."""


def used() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for text in sources().values():
        for level, event in LOGGED.findall(text):
            found.setdefault(event, set()).add("error" if level == "exception" else level)
    return found


def documented() -> dict[str, str]:
    table = rows(section(page("operations.md"), "## The log"))
    return {event: level for names, level, *_ in table for event in words(names)}


def test_every_event_is_in_the_table_and_every_row_is_an_event() -> None:
    events = {name for name in documented() if "=" not in name}
    assert events == set(used()) | MARKETS


def test_levels_are_as_the_table_says() -> None:
    told = documented()
    differing = {name: levels for name, levels in used().items() if levels != {told[name]}}
    assert differing == {}
