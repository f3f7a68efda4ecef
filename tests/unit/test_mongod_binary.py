"""Which mongod is embedded, and the error when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import MongodMissing
from collector.mongo.mongod_binary import find_mongod

if TYPE_CHECKING:
    from pathlib import Path


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    return program(tmp_path / "opt" / "mongod-7")


@pytest.fixture
def on_path(tmp_path: Path) -> Path:
    return program(tmp_path / "bin" / "mongod")


@pytest.fixture
def in_wheel(tmp_path: Path) -> Path:
    return program(tmp_path / "site-packages" / "fiftyone" / "db" / "bin" / "mongod")


def test_the_operators_choice_comes_first(
    tmp_path: Path, chosen: Path, on_path: Path, in_wheel: Path
) -> None:
    environ = {"COLLECTOR_MONGOD": str(chosen), "PATH": str(on_path.parent)}
    assert in_wheel.exists()
    assert find_mongod(environ, [str(tmp_path / "site-packages")]) == chosen


def test_path_comes_before_the_wheel(tmp_path: Path, on_path: Path, in_wheel: Path) -> None:
    environ = {"COLLECTOR_MONGOD": "", "PATH": str(on_path.parent)}
    assert in_wheel.exists()
    assert find_mongod(environ, [str(tmp_path / "site-packages")]) == on_path


def test_the_wheel_comes_last(tmp_path: Path, in_wheel: Path) -> None:
    import_path = [str(tmp_path / "nowhere"), str(tmp_path / "site-packages")]
    assert find_mongod({"PATH": str(tmp_path)}, import_path) == in_wheel


def test_the_wheel_is_found_without_importing_it(tmp_path: Path, in_wheel: Path) -> None:
    (in_wheel.parents[2] / "__init__.py").write_text("raise RuntimeError('imported')\n")
    assert find_mongod({}, [str(tmp_path / "site-packages")]) == in_wheel


def test_an_installed_wheel_is_found_by_itself() -> None:
    assert find_mongod({}).name == "mongod"


def test_a_choice_that_is_not_executable_is_not_passed_over(tmp_path: Path, on_path: Path) -> None:
    dull = program(tmp_path / "opt" / "mongod", mode=0o644)
    environ = {"COLLECTOR_MONGOD": str(dull), "PATH": str(on_path.parent)}
    with pytest.raises(MongodMissing, match=r"is not an executable file: chmod \+x"):
        find_mongod(environ)


def test_a_choice_that_does_not_exist_is_not_passed_over(tmp_path: Path, on_path: Path) -> None:
    environ = {"COLLECTOR_MONGOD": str(tmp_path / "gone"), "PATH": str(on_path.parent)}
    with pytest.raises(MongodMissing, match=r"gone does not exist"):
        find_mongod(environ)


def test_without_any_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MongodMissing) as caught:
        find_mongod({"PATH": str(tmp_path)}, [str(tmp_path)])
    for way in ("collector[embedded]", "PATH", "COLLECTOR_MONGOD", "COLLECTOR_MONGO_URI"):
        assert way in str(caught.value)
