"""`collector fxcm check`: its output and exit code, in each case."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from collector.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fxcm.server import FakeServer

REFUSAL = "Login failed. Incorrect user name or password"


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fxcm_python: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLLECTOR_HOME", str(tmp_path))
    monkeypatch.setenv("COLLECTOR_FXCM_PYTHON", str(fxcm_python))
    monkeypatch.setenv("COLLECTOR_FXCM__USER", "trader")
    monkeypatch.setenv("COLLECTOR_SECRET_FXCM", "hunter2")


async def check(server: FakeServer | None, *options: str) -> int:
    """The exit code; in a thread, as the verb has a loop of its own."""
    url = server.url if server else "http://127.0.0.1:1/Hosts.jsp"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLLECTOR_FXCM__URL", url)
        return await asyncio.to_thread(run, ["fxcm", "check", *options])


def said(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


async def test_python_sdk_and_server_are_shown_and_nobody_is_logged_in(
    fxcm_server: FakeServer, fxcm_python: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fxcm_server.change(refuse=REFUSAL)
    assert await check(fxcm_server, "--json") == 0
    facts = said(capsys)
    assert (facts["ok"], facts["server_answers"], facts["message"]) == (True, True, None)
    assert (facts["interpreter"], facts["sdk"]) == (str(fxcm_python), "1.6.43")
    assert (facts["url"], facts["user"]) == (fxcm_server.url, "trader")
    assert (await fxcm_server.seen("login")).user == "nobody"
    assert await check(fxcm_server) == 0
    shown = capsys.readouterr().out
    assert "forexconnect 1.6.43" in shown
    assert "answers" in shown
    assert "hunter2" not in shown


async def test_a_server_that_does_not_answer_is_e_api(
    fxcm_server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    fxcm_server.change(refuse="ORA-499: connection refused")
    assert await check(fxcm_server) == 3
    printed = capsys.readouterr()
    assert "does not answer" in printed.out
    assert printed.err.startswith("E_API: ")
    assert "ORA-499" in printed.err


async def test_without_the_sdk_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLLECTOR_FXCM_PYTHON", str(tmp_path / "python3.7"))
    assert await check(None) == 8
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("E_CONFIG: COLLECTOR_FXCM_PYTHON=")
    assert await check(None, "--json") == 8
    facts = said(capsys)
    assert (facts["ok"], facts["interpreter"], facts["server_answers"]) == (False, None, None)


@pytest.mark.parametrize("name", ["COLLECTOR_FXCM__USER", "COLLECTOR_SECRET_FXCM"])
async def test_an_account_that_is_not_set_is_e_config(
    fxcm_server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    fxcm_server.change(refuse=REFUSAL)
    monkeypatch.delenv(name)
    assert await check(fxcm_server, "--json") == 8
    printed = capsys.readouterr()
    facts = json.loads(printed.out)
    assert (facts["ok"], facts["server_answers"]) == (False, True)
    assert printed.err.startswith("E_CONFIG: ")
