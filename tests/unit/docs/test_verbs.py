"""The verbs, against docs/cli.md; every command line in the docs, against the verbs."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from collector.cli.datalayer import app as datalayer
from collector.cli.main import app as collector
from tests.unit.docs.pages import DOCS, ROOT, page, rows, section, words

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS: dict[str, Any] = {
    "collector": typer.main.get_command(collector),
    "datalayer": typer.main.get_command(datalayer),
}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]


def verbs(command: Any, at: str = "") -> Iterator[str]:
    if not hasattr(command, "commands"):
        yield at.strip()
        return
    for name, each in command.commands.items():
        yield from verbs(each, f"{at} {name}")


def told() -> set[str]:
    """`connector add`, `list` means `connector list` too."""
    found = set()
    for names, _ in rows(section(page("cli.md"), "## Verbs")):
        group = ""
        for word in words(names):
            name = re.sub(r" (\[?[A-Z].*|--.*)", "", word)
            group = name.rpartition(" ")[0] if " " in name else group
            found.add(f"{group} {name}".strip() if " " not in name else name)
    return found


def test_every_verb_is_in_the_table_and_every_row_is_a_verb() -> None:
    there = set(verbs(PROGRAMS["collector"]))
    there |= {f"datalayer {name}" for name in verbs(PROGRAMS["datalayer"])}
    assert told() == there


def command_lines() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", path.read_text("utf-8"), re.S):
            for line in block.replace("\\\n", " ").splitlines():
                bare = line.partition(" #")[0].strip().removeprefix(".venv/bin/")
                if bare.split(" ")[0] in PROGRAMS:
                    yield path.name, bare


@pytest.mark.parametrize(("where", "line"), list(command_lines()))
def test_a_command_line_of_the_docs_can_be_typed(where: str, line: str) -> None:
    program, *given = shlex.split(line.split(" | ")[0])
    command = PROGRAMS[program]
    while hasattr(command, "commands") and given and given[0] in command.commands:
        command = command.commands[given.pop(0)]
    if given in (["--install-completion"], ["--help"]):
        return
    assert not hasattr(command, "commands"), f"{where}: no verb in {line!r}"
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    used = {word.partition("=")[0] for word in given if re.match(r"--?[a-z]", word)}
    assert used <= known, f"{where}: {line!r}"
