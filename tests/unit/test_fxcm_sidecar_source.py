"""The sidecar's program keeps to what a bare Python 3.7 has, also where none is there to run it."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.fxcm.process import PROGRAM

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(PROGRAM.parent.glob("*.py"))


def imported(tree: ast.AST) -> set[str]:
    """The first names of all modules that are imported from outside the folder."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
    return {name.partition(".")[0] for name in found}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_python_37_and_needs_the_standard_library_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 7))
    assert imported(tree) <= sys.stdlib_module_names


def test_the_folder_is_all_there_is_of_it() -> None:
    assert PROGRAM in FILES
    assert len(FILES) > 5
