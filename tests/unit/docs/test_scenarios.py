"""The table of what happens to an operator, in docs/operations.md, against tests and verbs."""

from __future__ import annotations

from tests.unit.docs.pages import ROOT, page, rows, section, words


def scenarios() -> list[list[str]]:
    return rows(section(page("operations.md"), "## By symptom"))


def test_there_are_twenty_and_each_names_a_test_that_exists() -> None:
    assert len(scenarios()) == 20
    for what, *_, tried_by in scenarios():
        named = words(tried_by)
        assert named, what
        for name in named:
            assert (ROOT / "tests" / "acceptance" / name).is_file(), name
