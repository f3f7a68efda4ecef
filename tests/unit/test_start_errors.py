"""Mistakes that are found while a program starts: one line, its code, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from api.__main__ import main as api
from collector.cli.main import run
from migrations.__main__ import main as migrations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MISTAKES = [
    ("COLLECTOR_EXCHANGE_URLS", '{"a":', "COLLECTOR_EXCHANGE_URLS"),
    ("COLLECTOR_WORKER__EXCHANGES", "[binance", "COLLECTOR_WORKER"),
    ("COLLECTOR_SERVER__PORT", "abc", "server.port"),
    ("COLLECTOR_MONGO_URI", "mongodb://127.0.0.1:abc/", "its port is not a number"),
    ("COLLECTOR_MONGO_URL", "mongodb://127.0.0.1/", "COLLECTOR_MONGO_URI"),
]
PROGRAMS: list[tuple[str, Callable[[], int]]] = [
    ("api --port 0", api),
    ("migrations up", migrations),
    ("collector up", lambda: run(["up", "--port", "0"])),
    ("collector status", lambda: run(["status"])),
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each[0].replace(" ", "_"))
@pytest.mark.parametrize(("name", "value", "words"), MISTAKES, ids=lambda each: str(each)[:24])
def test_a_mistake_in_the_environment_is_one_line_with_its_code(
    program: tuple[str, Callable[[], int]],
    name: str,
    value: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    line, main = program
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_MONGO_URI", "mongodb://127.0.0.1:1/")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", line.split())
    assert main() == 8
    captured = capfd.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("E_CONFIG: ")
    assert words in captured.err


@pytest.mark.parametrize(
    ("text", "variables"),
    [("{}", {"COLLECTOR_EXCHANGE_URLS": '{"a":'}), ("streams: [\n  a: b: c", {})],
    ids=["broken_JSON", "broken_YAML"],
)
def test_a_worker_reports_a_mistake_in_one_line(
    tmp_path: Path, text: str, variables: dict[str, str]
) -> None:
    """As a process: importing the program of a worker changes the process that does it."""
    (tmp_path / "collector.yaml").write_text(f"{text}\n")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "workers"],
        cwd=tmp_path,
        env={**os.environ, "COLLECTOR_HOME": str(tmp_path), **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (8, "", 1)
    assert ended.stderr.startswith("E_CONFIG: ")
