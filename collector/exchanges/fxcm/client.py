"""FXCM for the rest of Collector: log in, request history, read ticks.

One login is one process. A session that is lost takes its process with it, and the next login
starts a fresh one. Nothing is tried again here: when to log in again is the caller's decision.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

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
_AWAY = "RECONNECTING"
_SIDECAR_TICKS = 20_000
_QUEUE_TICKS = 50_000


@dataclass(frozen=True, slots=True)
class FxcmLogin:
    """What a login needs. It travels in the request alone, and no repr shows the password."""

    user: str
    password: str = field(repr=False)
    url: str
    connection: str = "Demo"


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
        self._changes = 0
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
    def connection(self) -> int | None:
        """Which connection to the server there is; None while there is none.

        The SDK reconnects by itself. What was subscribed to before is silent from then on.
        """
        return self._changes if self.is_logged_in and self._status != _AWAY else None

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
        """A session in a fresh process. Nothing is subscribed to yet."""
        async with self._entering:
            await self._end()
            sidecar = await self._start()
            try:
                await self._hello(sidecar)
                await sidecar.ask("login", **asdict(credentials))
                if self._status in _LOST:
                    raise SessionLost(f"fxcm: {self._status} in the moment of the login")
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

    async def offers(self) -> tuple[Offer, ...]:
        """Every instrument and its last price."""
        return tuple(map(Offer._make, await self._open().ask("offers")))

    async def subscribe(self, instruments: Iterable[str] | None = None) -> None:
        """Ticks of these instruments from now on, of all when None, and of no others."""
        wanted = None if instruments is None else sorted(set(instruments))
        await self._open().ask("subscribe", instruments=wanted)

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
                self._changes += 1
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
