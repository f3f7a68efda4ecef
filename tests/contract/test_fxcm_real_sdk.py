"""The sidecar on Python 3.7: over the real SDK as far as it goes without an account, and over the
stand-in for the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.fxcm.check import check
from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin
from collector.exchanges.fxcm.interpreter import find_interpreter
from collector.exchanges.fxcm.wire import SessionStatus
from tests.support.fxcm.fxcorepy import truth
from tests.support.fxcm.raw_sidecar import raw_sidecar
from tests.support.fxcm.sdk import VERSION, fake_python
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from pathlib import Path

    from collector.exchanges.fxcm.client import SidecarEnded
    from collector.exchanges.fxcm.wire import Event
    from tests.support.fxcm.fixtures import Desk
    from tests.support.fxcm.server import FakeServer

# The first run installs the SDK.
pytestmark = pytest.mark.timeout(600)

NOBODY_LISTENS = "http://127.0.0.1:1/Hosts.jsp"


@pytest.fixture(scope="session")
def fake_on_37(fxcm_real_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_python(tmp_path_factory.mktemp("fxcm37"), fxcm_real_python)


async def test_a_refused_port_is_ora_499_from_the_real_sdk(
    fxcm_real_python: Path, tmp_path: Path
) -> None:
    environ = {**os.environ, "COLLECTOR_FXCM_PYTHON": str(fxcm_real_python)}
    interpreter = await find_interpreter(environ)
    assert interpreter.python.startswith("3.7.")
    assert interpreter.sdk == VERSION
    events: list[Event | SidecarEnded] = []
    async with FxcmClient(
        interpreter, tmp_path, environ, lambda: 60.0, on_event=events.append
    ) as client:
        with pytest.raises(ExchangeUnavailable, match=r"ORA-499: .*LN=nobody.*errorCode=7"):
            await client.login(FxcmLogin("nobody", "nothing", NOBODY_LISTENS))
    statuses = [event.status for event in events if isinstance(event, SessionStatus)]
    assert statuses[:2] == ["CONNECTING", "DISCONNECTED"]


async def test_the_check_reports_what_the_real_sdk_found(
    fxcm_real_python: Path, tmp_path: Path
) -> None:
    environ = {**os.environ, "COLLECTOR_FXCM_PYTHON": str(fxcm_real_python)}
    report = await check(environ, tmp_path, url=NOBODY_LISTENS)
    assert report.interpreter == str(fxcm_real_python)
    assert report.sdk == VERSION
    assert report.server_answers is False
    assert "ORA-499" in str(report.message)
    assert not report.ok


async def test_every_operation_works_on_python_37(
    fake_on_37: Path, tmp_path: Path, fxcm_server: FakeServer
) -> None:
    login = {"user": "trader", "password": "secret", "connection": "Demo"}
    async with raw_sidecar(fake_on_37, tmp_path) as sidecar:
        hello = await sidecar.ask("hello", tick_limit=100)
        assert hello["python"].startswith("3.7.")
        await sidecar.ask("login", url=fxcm_server.url, **login)
        offers = await sidecar.ask("offers")
        assert [offer[1] for offer in offers] == list(truth.INSTRUMENTS)
        for _ in range(2):
            await sidecar.ask("subscribe", instruments=["EUR/USD"])
        times = {"from_ms": NOON_MS - 60_000, "to_ms": NOON_MS, "ready_ms": 1000}
        columns = await sidecar.ask("history", instrument="EUR/USD", timeframe="m1", **times)
        assert columns["Date"] == [NOON_MS - 60_000, NOON_MS]
        fxcm_server.tick("EUR/USD", 1.1, 1.2)
        while not sidecar.ticks:
            assert await sidecar.line() is not None
        sidecar.send_bytes(b"not json\n")
        await sidecar.event("error", "protocol")
        sidecar.send("ping", lease_ms=0)
        assert await sidecar.ended() == 0
    assert fxcm_server.count("logout") == 1


async def test_a_session_on_python_37_is_what_it_is_on_ours(fxcm: Desk, fake_on_37: Path) -> None:
    fxcm.interpreter = await find_interpreter(
        {**os.environ, "COLLECTOR_FXCM_PYTHON": str(fake_on_37)}
    )
    client = await fxcm.logged_in()
    await client.subscribe()
    bars = await client.history("XAU/USD", "m5", NOON_MS - 3_600_000, NOON_MS)
    known = truth.bars("XAU/USD", "m5", NOON_MS - 3_600_000, NOON_MS, NOON_MS)
    assert bars.ask_close.tolist() == [bar.ask_close for bar in known]
    fxcm.server.burst(5000, "EUR/USD", "USD/JPY")
    async for tick in client.ticks:
        if tick.number == 5000:
            break
    assert client.ticks.counts.dropped_in_sidecar == 0
    assert client.ticks.counts.delivered == 5000
    await client.logout()
    assert fxcm.server.count("logout") == 1
