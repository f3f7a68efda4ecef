"""The adapter of FXCM on the stand-in SDK, on a clock that a test moves."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from collector.clock import ManualClock
from collector.exchanges.fxcm.provider import FxcmProvider
from collector.exchanges.fxcm.settings import FxcmSettings
from collector.exchanges.provider import Access
from tests.support.ccxt_venue import NotedPermit
from tests.support.fxcm.server import NOON_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from collector.exchanges.exclusive import SessionState
    from collector.exchanges.fxcm.process import Timeouts
    from collector.exchanges.port import Exchange, Market
    from tests.support.fxcm.server import FakeServer

PASSWORD = "correct horse"


@dataclass
class GivenRight:
    """A right to the session that lasts as long as a test wants."""

    seconds: float = 60.0
    reports: list[tuple[str, str]] = field(default_factory=list)
    diags: list[Mapping[str, Any]] = field(default_factory=list)

    def left(self) -> float:
        return self.seconds

    def report(self, state: SessionState, reason: str) -> None:
        self.reports.append((state.value, reason))

    def diagnose(self, diag: Mapping[str, Any]) -> None:
        self.diags.append(diag)

    @property
    def states(self) -> list[str]:
        """In order; one that was reported again with another reason stands once."""
        return [state for state, _ in groupby(state for state, _ in self.reports)]


@dataclass
class AdapterDesk:
    """What a test holds in its hands."""

    exchange: Exchange
    server: FakeServer
    permit: NotedPermit
    right: GivenRight
    clock: ManualClock

    async def markets(self) -> tuple[Market, ...]:
        return (await self.exchange.load_markets()).markets


@asynccontextmanager
async def adapter(
    server: FakeServer,
    python: Path,
    home: Path,
    *,
    permit: NotedPermit | None = None,
    timeouts: Timeouts | None = None,
    now_ms: int = NOON_MS,
    **settings: Any,
) -> AsyncIterator[AdapterDesk]:
    """Nothing is logged in yet. The market is open at noon."""
    clock, right, noted = ManualClock(now_ms), GivenRight(), permit or NotedPermit()
    server.change(now_ms=now_ms)
    environ = {**os.environ, "COLLECTOR_FXCM_PYTHON": str(python)}
    (home / "secrets").mkdir(parents=True)
    secret = home / "secrets" / "fxcm"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    access = Access(
        clock,
        {"fxcm": server.url},
        home=home,
        session=right,
        section=FxcmSettings(**{"user": "trader", **settings}),
        environ=environ,
    )
    exchange = FxcmProvider(timeouts).open("fxcm", noted, access)
    try:
        yield AdapterDesk(exchange, server, noted, right, clock)
    finally:
        await exchange.close()
