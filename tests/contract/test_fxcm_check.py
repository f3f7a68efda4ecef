"""Whether FXCM can be used from here: what the check reports, in each case."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collector.exchanges.fxcm.check import check
from collector.exchanges.fxcm.client import FxcmLogin
from collector.exchanges.fxcm.process import Timeouts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fxcm.server import FakeServer

REFUSAL = "Login failed. Incorrect user name or password"


@pytest.fixture
def environ(fxcm_python: Path) -> dict[str, str]:
    return {**os.environ, "COLLECTOR_FXCM_PYTHON": str(fxcm_python)}


def trader(server: FakeServer) -> FxcmLogin:
    return FxcmLogin("trader", "secret", server.url)


async def test_credentials_that_are_right_log_in_and_out(
    environ: dict[str, str], tmp_path: Path, fxcm_server: FakeServer
) -> None:
    report = await check(environ, tmp_path, credentials=trader(fxcm_server))
    assert report.ok
    assert (report.server_answers, report.logged_in, report.message) == (True, True, None)
    assert report.interpreter == environ["COLLECTOR_FXCM_PYTHON"]
    assert report.sdk == "1.6.43"
    assert fxcm_server.count("logout") == 1


async def test_credentials_that_are_wrong_are_reported(
    environ: dict[str, str], tmp_path: Path, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(refuse=REFUSAL)
    report = await check(environ, tmp_path, credentials=trader(fxcm_server))
    assert not report.ok
    assert (report.server_answers, report.logged_in) == (True, False)
    assert REFUSAL in str(report.message)


async def test_without_credentials_a_refusal_is_an_answer(
    environ: dict[str, str], tmp_path: Path, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(refuse=REFUSAL)
    report = await check(environ, tmp_path, url=fxcm_server.url)
    assert report.ok
    assert (report.server_answers, report.logged_in, report.message) == (True, None, None)
    assert (await fxcm_server.seen("login")).user == "nobody"


async def test_a_server_that_refuses_connections_does_not_answer(
    environ: dict[str, str], tmp_path: Path
) -> None:
    report = await check(environ, tmp_path, url="http://127.0.0.1:1/Hosts.jsp")
    assert not report.ok
    assert (report.server_answers, report.logged_in) == (False, None)
    assert "ORA-499" in str(report.message)


async def test_a_server_that_says_nothing_does_not_answer(
    environ: dict[str, str], tmp_path: Path, fxcm_server: FakeServer
) -> None:
    fxcm_server.change(silent=True)
    timeouts = Timeouts(login=1.0)
    report = await check(environ, tmp_path, credentials=trader(fxcm_server), timeouts=timeouts)
    assert (report.server_answers, report.logged_in) == (False, False)
    assert "no answer to login" in str(report.message)


async def test_without_an_interpreter_the_report_says_what_to_install(tmp_path: Path) -> None:
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    report = await check(environ, tmp_path)
    assert not report.ok
    assert (report.interpreter, report.sdk, report.server_answers) == (None, None, None)
    assert "no Python 3.7 found" in str(report.message)
    assert "pip install forexconnect==1.6.43" in str(report.message)
