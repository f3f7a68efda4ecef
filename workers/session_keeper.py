"""A worker's hold on accounts that allow one login: taken when free, renewed, passed on at drain.

Jobs of such an exchange are claimed by the worker that holds its session lease and by no other. The
session itself is opened by the adapter, with the first request of a job.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.connectors.session_lease import SessionLease, SessionLeases
from collector.errors import CollectorError, DatabaseUnavailable
from collector.exchanges.registry import is_exclusive
from workers.duty import Duty
from workers.lease_renewal import LeaseRenewal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from collector.clock import Clock
    from collector.connectors.connector import Connector
    from collector.connectors.session_lease import SessionTerms
    from collector.exchanges.exclusive import SessionState
    from collector.mongo.client import Database

LOOK_AGAIN_SECONDS = 60.0
"""When to look again whether this machine can open a session at all."""

_log = logs.get("workers.session")


@dataclass(frozen=True, slots=True)
class HeldRight:
    """What an adapter sees of its exchange's lease (exchanges/exclusive.py)."""

    keeper: SessionKeeper
    exchange_id: str

    def left(self) -> float:
        return self.keeper.left(self.exchange_id)

    def report(self, state: SessionState, reason: str) -> None:
        self.keeper.report(self.exchange_id, state, reason)

    def diagnose(self, diag: Mapping[str, Any]) -> None:
        self.keeper.diagnose(self.exchange_id, diag)


class SessionKeeper(LeaseRenewal[SessionLease]):
    """Every session lease of one worker. Leave it only when their exchanges are closed."""

    def __init__(
        self,
        database: Database,
        worker_id: str,
        clock: Clock,
        *,
        lacking: Callable[[str], Awaitable[str | None]],
        terms: SessionTerms | None = None,
    ) -> None:
        """`lacking` returns what this machine lacks to open a session; None: nothing."""
        self._leases = SessionLeases(database, worker_id, clock, terms)
        super().__init__(self._leases, clock, "session")
        self._server_clock = database.server_clock
        self._lacking = lacking
        self._held: dict[str, SessionLease] = {}
        self._unable: dict[str, tuple[str, float]] = {}
        self._reports: deque[Callable[[], Awaitable[None]]] = deque()
        self._reported = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.on_lost: Callable[[str], None] = lambda _: None
        """Called with the exchange whose lease is gone: its jobs have to be put down."""
        self.log_out: Callable[[str], Awaitable[None]] = _nothing_to_close
        """Closes an exchange before its lease is freed."""

    async def __aenter__(self) -> SessionKeeper:
        self._tasks = [
            asyncio.create_task(self.keep_renewing(), name="session:renew"),
            asyncio.create_task(self._keep_reporting(), name="session:report"),
        ]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for lease in list(self._held.values()):
            del self._held[lease.exchange_id]
            with suppress(DatabaseUnavailable):  # Then it expires.
                await self._leases.release(lease, "the worker has stopped")
                _log.info("session_released", exchange=lease.exchange_id, fence=lease.fence)

    def right(self, exchange_id: str) -> HeldRight:
        """For the adapter of an exchange; it stays good when the lease is lost and taken again."""
        return HeldRight(self, exchange_id)

    def left(self, exchange_id: str) -> float:
        """Seconds for which the lease can be trusted; 0 when it is not ours."""
        lease = self._held.get(exchange_id)
        return 0.0 if lease is None else lease.left(self._clock.monotonic())

    def report(self, exchange_id: str, state: SessionState, reason: str) -> None:
        """Has a state written down, after those that were reported before."""
        lease = self._held.get(exchange_id)
        if lease is None:
            return
        _log.info("session_state", exchange=exchange_id, state=state.value, reason=reason)
        self._reports.append(partial(self._leases.report, lease, state, reason))
        self._reported.set()

    def diagnose(self, exchange_id: str, diag: Mapping[str, Any]) -> None:
        """Has it written down beside the state."""
        lease = self._held.get(exchange_id)
        if lease is not None:
            self._reports.append(partial(self._leases.diagnose, lease, diag))
            self._reported.set()

    async def may_run(self, connector: Connector) -> bool:
        """Whether this worker may claim the exchange's jobs. Takes its session when it is free."""
        exchange_id = connector.exchange_id
        if not is_exclusive(exchange_id) or self.left(exchange_id) > 0:
            return True
        if exchange_id in self._held or self.free_in(connector) > 0:
            return False
        if await self._is_unable(exchange_id):
            return False
        lease = await self._leases.take(exchange_id)
        if lease is None:
            return False
        self._held[exchange_id] = lease
        _log.info("session_taken", exchange=exchange_id, fence=lease.fence)
        return True

    @property
    def held(self) -> tuple[str, ...]:
        """The exchanges whose lease is ours."""
        return tuple(self._held)

    async def let_go(self, exchange_id: str, why: str) -> None:
        """Logs out and frees the lease: the session is not needed now."""
        lease = self._held.pop(exchange_id, None)
        if lease is not None:
            await self.log_out(exchange_id)
            await self._leases.release(lease, why)
            _log.info("session_released", exchange=exchange_id, fence=lease.fence)

    def free_in(self, connector: Connector) -> float:
        """Seconds until the session may be available, as far as the connector shows."""
        session = connector.document.get("session") or {}
        free_at = int(session.get("free_at") or 0)
        return max(0.0, (free_at - self._server_clock.now_ms()) / 1000)

    async def _is_unable(self, exchange_id: str) -> bool:
        """Whether this machine cannot open the session. Another one may: it takes no lease."""
        known, until = self._unable.get(exchange_id, ("", 0.0))
        if known and self._clock.monotonic() < until:
            return True
        try:
            reason = await self._lacking(exchange_id)
        except CollectorError as error:
            reason = str(error)
        if reason is None:
            self._unable.pop(exchange_id, None)
            return False
        self._unable[exchange_id] = (reason, self._clock.monotonic() + LOOK_AGAIN_SECONDS)
        if reason != known:
            _log.warning("session_impossible", exchange=exchange_id, reason=reason)
            await self._leases.report_unable(exchange_id, reason)
        return True

    def leases(self) -> list[SessionLease]:
        return list(self._held.values())

    def replace(self, lease: SessionLease) -> None:
        if lease.exchange_id in self._held:
            self._held[lease.exchange_id] = lease

    def drop(self, lease: SessionLease, why: str) -> None:
        if self._held.pop(lease.exchange_id, None) is None:
            return
        _log.warning("session_lease_lost", exchange=lease.exchange_id, fence=lease.fence, why=why)
        self.on_lost(lease.exchange_id)

    async def _keep_reporting(self) -> None:
        duty = Duty("session_report")
        while True:
            await self._reported.wait()
            self._reported.clear()
            with duty.tolerated():
                while self._reports:
                    await self._reports[0]()
                    self._reports.popleft()
            if duty.failures:
                self._reported.set()
                await asyncio.sleep(duty.pause())


async def _nothing_to_close(exchange_id: str) -> None:
    pass
