"""The tree of errors, their codes and exit codes, against docs/errors.md."""

from __future__ import annotations

import importlib
import pkgutil
import re

import collector
from collector.errors import CollectorError
from tests.unit.docs.pages import page, rows, section, words

PAGE = page("errors.md")


def classes(root: type[CollectorError] = CollectorError) -> list[type[CollectorError]]:
    """All of the library. A front end's own way to raise one is not a kind of its own."""
    for module in pkgutil.walk_packages(collector.__path__, "collector."):
        if not module.name.startswith(("collector.cli", "collector.simulated")):
            importlib.import_module(module.name)
    found, waiting = [], [root]
    while waiting:
        each = waiting.pop()
        found.append(each)
        subs = each.__subclasses__()
        waiting += [sub for sub in subs if "collector.cli" not in sub.__module__]
    return found


def drawn() -> dict[str, str | None]:
    """Every class of the tree, and the one it hangs from."""
    tree = section(PAGE, "## The tree").partition("```")[2].partition("```")[0]
    above: list[str] = []
    found: dict[str, str | None] = {}
    for line in tree.splitlines():
        match = re.match(r"((?:│   |    )*)((?:├── |└── )?)(\w+)", line)
        if not line.strip() or match is None:
            continue
        depth = len(match[1]) // 4 + (1 if match[2] else 0)
        above = [*above[:depth], match[3]]
        found[match[3]] = above[depth - 1] if depth else None
    return found


def test_the_tree_is_drawn_as_it_is() -> None:
    tree = drawn()
    for each in classes():
        parents = {base.__name__ for base in each.__bases__ if issubclass(base, CollectorError)}
        if "code" not in vars(each) and each.__module__ != CollectorError.__module__:
            continue  # One room's own word for something that has a code already.
        assert each.__name__ in tree, each
        assert tree[each.__name__] in (parents or {None}), each
    assert set(tree) <= {each.__name__ for each in classes()}


def test_every_code_has_a_row_with_its_exit_code() -> None:
    table = rows(section(PAGE, "## Codes"))
    told = {words(code)[0]: int(number) for code, number, *_ in table}
    own = {each.code: each.exit_code for each in classes() if "code" in vars(each)}
    assert told == own


def test_every_exit_code_has_a_row() -> None:
    told = {
        (int(number), words(name)[0])
        for number, name, _ in rows(section(PAGE, "## Exit codes"))
        if words(name)
    }
    assert told == {(each.exit_code, each.exit_name) for each in classes()}
