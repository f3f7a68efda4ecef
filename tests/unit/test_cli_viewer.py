"""Which API `collector watch` shows, and when it prints lines instead."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from collector.cli.actions.viewer import api_url
from collector.cli.main import app
from collector.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_configured_address_wins(tmp_path: Path) -> None:
    assert api_url(Settings(home=tmp_path, url="https://far.example")) == "https://far.example"


def test_without_one_it_is_where_the_api_of_this_machine_listens(tmp_path: Path) -> None:
    assert api_url(Settings(home=tmp_path)) == "http://127.0.0.1:8000"
    settings = Settings(home=tmp_path, server={"host": "::1", "port": 9000})
    assert api_url(settings) == "http://[::1]:9000"


def test_the_environment_names_a_remote_fleet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_URL", "https://far.example")
    monkeypatch.setenv("COLLECTOR_TOKEN", "a-key")
    settings = Settings(home=tmp_path)
    assert api_url(settings) == "https://far.example"
    assert settings.token is not None
    assert "a-key" not in repr(settings)


class Calls:
    """What `collector watch` would have done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> None:
        self.made: list[str] = []

        async def lines(asked: Any, every: float) -> None:
            self.made.append("lines")

        def viewer(asked: Any, every: float, mode: str) -> None:
            self.made.append(f"viewer {mode}")

        class Screen:
            is_terminal = terminal

        monkeypatch.setattr("collector.cli.actions.status.watch", lines)
        monkeypatch.setattr("collector.cli.actions.viewer.view", viewer)
        monkeypatch.setattr("collector.progress.console", Screen)

    def watch(self, *arguments: str) -> str:
        result = CliRunner().invoke(app, ["watch", *arguments])
        assert result.exit_code == 0, result.output
        return self.made[-1]


def test_on_a_terminal_it_is_the_viewer_unless_lines_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = Calls(monkeypatch, terminal=True)
    assert calls.watch() == "viewer 1"
    assert calls.watch("--mode", "5") == "viewer 5"
    assert calls.watch("--plain") == "lines"
    assert calls.watch("--json") == "lines"


def test_into_a_pipe_it_is_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Calls(monkeypatch, terminal=False).watch() == "lines"


def test_neither_redis_nor_the_viewer_is_imported_where_nobody_uses_it() -> None:
    program = (
        "import sys, workers.main, collector.cli.main\n"
        "print([name for name in ('redis', 'textual') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
