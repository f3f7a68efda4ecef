"""FXCM for the rest of Collector: log in, request history, read ticks.

One login is one process. A session that is lost takes its process with it, and the next login
starts a fresh one. Nothing is tried again here: when to log in again is the caller's decision.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.errors import BadRequest, CollectorError
from collector.exchanges.fxcm.bars import TIMEFRAMES, BidAskBars
from collector.exchanges.fxcm.failures import SessionLost
from collector.exchanges.fxcm.process import Sidecar, Timeouts
from collector.exchanges.fxcm.sidecar import PROTOCOL
from collector.exchanges.fxcm.tick_queue import TickQueue
from collector.exchanges.fxcm.wire import BadLine, Batch, Event, Offer, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Self

    from collector.exchanges.fxcm.interpreter import Interpreter
    from collector.exchanges.fxcm.process import Lease

_LOST = frozenset({"SESSION_LOST", "DISCONNECTED"})
_SIDECAR_TICKS = 20_000
_QUEUE_TICKS = 50_000


@dataclass(frozen=True, slots=True)
class FxcmLogin:
    """What a login needs. They travel in the request alone, and no repr shows the secrets."""

    user: str
    password: str = field(repr=False)
    url: str
    connection: str = "Demo"
    session_id: str | None = None
    pin: str | None = field(default=None, repr=False)

    def fields(self) -> dict[str, str | None]:
        names = ("user", "password", "url", "connection", "session_id", "pin")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class SidecarEnded:
    """A sidecar is gone, for any reason. `stderr` is the last it printed."""

    pid: int
    cause: CollectorError
    expected: bool
    stderr: tuple[str, ...] = ()


def _ignore(_event: Event | SidecarEnded) -> None:
    pass


class FxcmClient:
    """The way to FXCM's SDK.

    `lease` returns how many seconds of the session lease are left; the sidecar logs out by itself
    when they pass. `on_event` gets every change of the session, in order, and each end of a
    sidecar.
    """

    def __init__(
        self,
        interpreter: Interpreter,
        home: Path,
        environ: Mapping[str, str],
        lease: Lease,
        *,
        on_event: Callable[[Event | SidecarEnded], None] = _ignore,
        timeouts: Timeouts | None = None,
        sidecar_ticks: int = _SIDECAR_TICKS,
        queue_ticks: int = _QUEUE_TICKS,
    ) -> None:
        self._interpreter = interpreter
        self._home = home
        self._environ = environ
        self._lease = lease
        self._on_event = on_event
        self._timeouts = timeouts or Timeouts()
        self._sidecar_ticks = sidecar_ticks
        self._entering = asyncio.Lock()
        self._sidecar: Sidecar | None = None
        self._status: str | None = None
        self._subscribed: list[str] | None = None
        self._is_subscribed = False
        self.ticks = TickQueue(queue_ticks)
        """Iterate over it for ticks; it goes on over logins and ends with `close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def status(self) -> str | None:
        """The last status of the session; None when there is no process."""
        return self._status

    @property
    def is_logged_in(self) -> bool:
        """Whether there is a session that is not being ended."""
        sidecar = self._sidecar
        known = self._status is not None and self._status not in _LOST
        return known and sidecar is not None and not sidecar.is_ending

    @property
    def pid(self) -> int | None:
        """The process that holds the session."""
        return None if self._sidecar is None else self._sidecar.pid

    async def login(self, credentials: FxcmLogin) -> None:
        """A session in a fresh process. The subscription of an earlier one is taken up again."""
        async with self._entering:
            await self._end()
            sidecar = await self._start()
            try:
                await self._hello(sidecar)
                await sidecar.ask("login", **credentials.fields())
                if self._status in _LOST:
                    raise SessionLost(f"fxcm: {self._status} in the moment of the login")
                if self._is_subscribed:
                    await sidecar.ask("subscribe", instruments=self._subscribed)
            except BaseException:
                await sidecar.close()
                raise

    async def logout(self) -> None:
        """Ends the session and its process."""
        async with self._entering:
            await self._end()

    async def close(self) -> None:
        await self.logout()
        self.ticks.close()

    async def subscribe(self, instruments: Iterable[str] | None = None) -> tuple[Offer, ...]:
        """Ticks of these instruments from now on, of all when None. Returns every offer."""
        wanted = None if instruments is None else sorted(set(instruments))
        offers = await self._open().ask("subscribe", instruments=wanted)
        self._subscribed, self._is_subscribed = wanted, True
        return tuple(map(Offer._make, offers))

    @property
    def subscribed(self) -> tuple[str, ...] | None:
        """Whose ticks come; None: those of all instruments."""
        if not self._is_subscribed:
            return ()
        return None if self._subscribed is None else tuple(self._subscribed)

    async def set_subscription(self, instrument: str, status: str) -> None:
        """Whether the server sends an instrument's prices: T tradable, V view only, D not."""
        await self._open().ask("set_subscription", instrument=instrument, status=status)

    async def history(
        self, instrument: str, timeframe: str, from_ms: int, to_ms: int
    ) -> BidAskBars:
        """Bars that begin from `from_ms` to `to_ms`, to the second, the running one included."""
        if timeframe not in TIMEFRAMES:
            raise BadRequest(f"fxcm: no such timeframe: {timeframe}")
        columns = await self._open().ask(
            "history",
            instrument=instrument,
            timeframe=timeframe,
            from_ms=from_ms,
            to_ms=to_ms,
            # Half of the time to get ready, the other half for the bars.
            ready_ms=round(self._timeouts.history * 500),
        )
        return BidAskBars.of(columns)

    def _open(self) -> Sidecar:
        if self._sidecar is None:
            raise SessionLost("fxcm: not logged in")
        return self._sidecar

    async def _start(self) -> Sidecar:
        self.ticks.new_sidecar()
        self._sidecar = await Sidecar.start(
            self._interpreter,
            self._home,
            self._environ,
            lease=self._lease,
            timeouts=self._timeouts,
            on_batch=self._receive,
            on_end=self._ended,
        )
        return self._sidecar

    async def _hello(self, sidecar: Sidecar) -> None:
        hello = await sidecar.ask("hello", tick_limit=self._sidecar_ticks)
        protocol = hello.get("protocol") if isinstance(hello, dict) else None
        if protocol != PROTOCOL:
            raise BadLine(f"fxcm: the sidecar speaks protocol {protocol}, not {PROTOCOL}")

    async def _end(self) -> None:
        if self._sidecar is not None:
            await self._sidecar.close()

    def _receive(self, sidecar: Sidecar, batch: Batch) -> None:
        self.ticks.put(batch)
        for event in batch.events:
            self._notify(event)
            if isinstance(event, SessionStatus):
                self._status = event.status
                if event.status in _LOST and not (sidecar.closing or sidecar.waits_for("login")):
                    sidecar.kill(SessionLost(f"fxcm: the session has ended: {event.status}"))

    def _ended(self, sidecar: Sidecar) -> None:
        if self._sidecar is sidecar:
            self._sidecar = self._status = None
        assert sidecar.end_cause is not None
        self._notify(SidecarEnded(sidecar.pid, sidecar.end_cause, sidecar.closing, sidecar.stderr))

    def _notify(self, event: Event | SidecarEnded) -> None:
        # Later, so that nothing the listener does can break the reading of the pipe.
        asyncio.get_running_loop().call_soon(self._on_event, event)
