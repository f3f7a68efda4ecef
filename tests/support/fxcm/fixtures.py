"""Fixtures for tests of FXCM: an interpreter with the stand-in, a server, clients."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from collector.exchanges.fxcm.client import FxcmClient, FxcmLogin, SidecarEnded
from collector.exchanges.fxcm.interpreter import Interpreter, find_interpreter
from tests.support.fxcm.living import gone
from tests.support.fxcm.sdk import fake_python, real_python
from tests.support.fxcm.server import FakeServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.exchanges.fxcm.wire import Event

PASSWORD = "correct horse"


@dataclass
class Desk:
    """A client of the server, the events it reported, and its lease."""

    server: FakeServer
    interpreter: Interpreter
    environ: dict[str, str]
    home: Path
    events: list[Event | SidecarEnded] = field(default_factory=list)
    lease_seconds: float = 60.0
    clients: list[FxcmClient] = field(default_factory=list)

    def client(self, **options: Any) -> FxcmClient:
        made = FxcmClient(
            self.interpreter,
            self.home,
            self.environ,
            lambda: self.lease_seconds,
            on_event=self.events.append,
            **options,
        )
        self.clients.append(made)
        return made

    def credentials(self, **fields: Any) -> FxcmLogin:
        return FxcmLogin("trader", PASSWORD, self.server.url, **fields)

    async def logged_in(self, **options: Any) -> FxcmClient:
        client = self.client(**options)
        await client.login(self.credentials())
        return client

    @property
    def ends(self) -> list[SidecarEnded]:
        return [event for event in self.events if isinstance(event, SidecarEnded)]


@pytest.fixture(scope="session")
def fxcm_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Our own Python with the SDK over the stand-in."""
    return fake_python(tmp_path_factory.mktemp("fxcm"))


@pytest.fixture(scope="session")
def fxcm_real_python() -> Path:
    """A Python 3.7 with the real SDK."""
    return real_python()


@pytest.fixture(scope="session")
async def fxcm_interpreter(fxcm_python: Path) -> Interpreter:
    return await find_interpreter({**os.environ, "COLLECTOR_FXCM_PYTHON": str(fxcm_python)})


@pytest.fixture
async def fxcm_server() -> AsyncIterator[FakeServer]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def fxcm(
    fxcm_server: FakeServer, fxcm_interpreter: Interpreter, tmp_path: Path
) -> AsyncIterator[Desk]:
    """No process that logged in outlives its test."""
    desk = Desk(fxcm_server, fxcm_interpreter, dict(os.environ), tmp_path / "fxcm")
    yield desk
    for client in desk.clients:
        await client.close()
    for entry in fxcm_server.journal:
        await gone(entry.pid)
