"""Which API `collector watch` shows, and when it prints lines instead."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from collector import logs
from collector.cli.actions import viewer
from collector.cli.actions.viewer import api_url
from collector.cli.main import app, run
from collector.cli.verb import Asked
from collector.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


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


@pytest.mark.parametrize(
    ("settings", "sent"),
    [
        ({"url": "https://far.example"}, True),
        ({"server": {"host": "127.0.0.1"}}, True),
        ({"server": {"host": "0.0.0.0"}}, True),
        ({"server": {"host": "::1"}}, True),
        ({"server": {"host": "evil.example"}}, False),
        ({"server": {"host": "192.0.2.7"}}, False),
    ],
)
def test_without_an_address_the_key_stays_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], sent: bool
) -> None:
    keys: list[object] = []

    class Fleet:
        def __init__(self, _url: str, token: object, *_: object) -> None:
            keys.append(token)

    class Screen:
        failure = None

        def __init__(self, *_: object) -> None:
            pass

        def run(self) -> None:
            pass

    monkeypatch.setattr(viewer, "RemoteFleet", Fleet)
    monkeypatch.setattr(viewer, "Viewer", Screen)
    found = Settings(home=tmp_path, token="a-key", **settings)
    monkeypatch.setattr(Asked, "settings", lambda _: found)
    try:
        viewer.view(Asked(), 1.0, "1")
    finally:
        logs.configure("CRITICAL", "json")
    assert [key is not None for key in keys] == [sent]


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://far.example", True),
        ("HTTP://192.0.2.7:8000", True),
        ("https://far.example", False),
        ("http://127.0.0.1:8000", False),
        ("http://localhost", False),
        ("http://[::1]:8000", False),
    ],
)
def test_a_key_that_travels_unencrypted_is_mentioned(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    url: str,
    warned: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_URL", url)
    monkeypatch.setenv("COLLECTOR_TOKEN", "a-key")
    run(["backup", "somewhere"])
    err = capsys.readouterr().err
    assert err.count("sent unencrypted") == int(warned)
    assert "a-key" not in err
    monkeypatch.delenv("COLLECTOR_TOKEN")
    run(["backup", "somewhere"])
    assert "unencrypted" not in capsys.readouterr().err


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
