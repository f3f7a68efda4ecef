"""The settings file: a folder in its place is an error, wherever it is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.errors import ConfigError
from collector.settings import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that is not the working directory; neither has a settings file."""
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_without_a_file_there_are_defaults(home: Path) -> None:
    assert load().mongo_db == "collector"


@pytest.mark.parametrize("where", ["home", "work"])
def test_a_folder_in_place_of_the_file_is_not_passed_over(home: Path, where: str) -> None:
    (home.parent / where / "collector.yaml").mkdir()
    with pytest.raises(ConfigError, match=r"collector\.yaml is a folder and must be a file"):
        load()


def test_a_named_folder_is_refused_with_the_same_words(home: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder and must be a file"):
        load(home)
