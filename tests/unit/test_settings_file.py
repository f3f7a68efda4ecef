"""The settings file: a folder in its place is an error, wherever it is looked for."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli.completion import jobs_by_id
from collector.errors import ConfigError
from collector.remote.api_client import ApiAddress
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


def write(folder: Path, text: str) -> Path:
    path = folder / "collector.yaml"
    path.write_text(text)
    return path


def test_a_file_of_another_user_in_the_working_directory_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(home.parent / "work", "mongo_db: theirs\n")
    write(home, "mongo_db: mine\n")
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1_000)
    if path.stat().st_uid == 0:
        os.chown(path, 4_000, -1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load()
    assert load(path).mongo_db == "theirs", "a file that was named is meant"
    path.unlink()
    path.symlink_to(home / "collector.yaml")
    if os.geteuid() == 0:
        os.chown(path, 4_000, -1, follow_symlinks=False)
    with pytest.raises(ConfigError, match="belongs to another user"):
        load()
    path.unlink()
    assert load().mongo_db == "mine"


@pytest.mark.parametrize("where", ["home", "work"])
def test_a_key_is_never_sent_to_an_address_from_elsewhere(
    home: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = write(home.parent / where, "url: https://evil.example\n")
    monkeypatch.setenv("COLLECTOR_TOKEN", "a-key")
    for config in (None, path):
        with pytest.raises(ConfigError, match="COLLECTOR_TOKEN goes to COLLECTOR_URL"):
            load(config)
    monkeypatch.setenv("COLLECTOR_URL", "https://good.example")
    assert load().url == "https://good.example"
    monkeypatch.setenv("COLLECTOR_TOKEN", "")
    path.write_text("url: https://good.example\ntoken: b-key\n")
    assert load().token is None
    monkeypatch.delenv("COLLECTOR_TOKEN")
    with pytest.raises(ConfigError, match="`token` goes to `url`"):
        load()
    monkeypatch.delenv("COLLECTOR_URL")
    token = load().token
    assert token is not None
    assert token.get_secret_value() == "b-key"


def test_a_completion_sends_no_key_to_an_address_from_elsewhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def get(address: ApiAddress, *_: object, **__: object) -> object:
        asked.append(address.url)
        return {"items": []}

    monkeypatch.setattr(ApiAddress, "get", get)
    write(home.parent / "work", "url: https://evil.example\n")
    monkeypatch.setenv("COLLECTOR_TOKEN", "a-key")
    context: Any = SimpleNamespace(params={})
    assert jobs_by_id(context, "") == []
    assert asked == []
    monkeypatch.setenv("COLLECTOR_URL", "https://good.example")
    jobs_by_id(context, "")
    assert set(asked) == {"https://good.example"}
