"""Kinds of troubles, against the table in docs/operations.md."""

from __future__ import annotations

from collector.operations.troubles import TroubleKind
from tests.unit.docs.pages import page, rows, section, words


def test_every_trouble_is_in_the_table_in_the_order_in_which_they_are_shown() -> None:
    table = rows(section(page("operations.md"), "## Troubles"))
    assert [words(cells[0])[0] for cells in table] == [kind.value for kind in TroubleKind]
