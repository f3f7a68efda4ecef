"""One name for one thing: no two classes of the program are called the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("collector", "api", "workers", "migrations")


def class_names() -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(path.relative_to(ROOT).as_posix())
    return found


def test_no_class_name_stands_twice() -> None:
    assert {name: paths for name, paths in class_names().items() if len(paths) > 1} == {}
