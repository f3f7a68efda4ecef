"""FXCM's session, opened when it is needed and reported as it changes.

A session is opened only while the right to it holds. After a failure there is no new login before a
pause is over, however many jobs want one: each login costs the server. A refused user and password
are not tried a second time, which might lock the account. Nothing sleeps here; a caller that comes
too early gets the failure again.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

from collector import logs
from collector.backoff_controller import BackoffController, backoff_diag
from collector.errors import (
    CollectorError,
    ExchangeRefused,
    ExchangeUnavailable,
    KeyRefused,
    SessionNotHeld,
)
from collector.exchanges.fxcm.client import FxcmClient, SidecarEnded
from collector.exchanges.fxcm.failures import kind_of
from collector.exchanges.fxcm.interpreter import find_interpreter
from collector.exchanges.fxcm.session_health import SessionHealth
from collector.exchanges.fxcm.wire import SessionStatus, SidecarError

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.exchanges.exclusive import SessionRight, SessionState
    from collector.exchanges.fxcm.backoff_settings import BackoffSettings
    from collector.exchanges.fxcm.client import FxcmLogin
    from collector.exchanges.fxcm.process import Timeouts
    from collector.exchanges.fxcm.wire import Event
    from collector.exchanges.provider import Access
    from collector.market.calendar.calendar import Calendar

LOOK_SECONDS = 1.0
"""How soon the opening or the close of the market, or the first tick, is reported."""
FAILURES = (ExchangeUnavailable, ExchangeRefused, KeyRefused)
"""What makes everyone wait before the next try."""

_log = logs.get("collector.fxcm")


class OpenSession:
    """The one session of this process. `client` logs in when there is none."""

    def __init__(
        self,
        right: SessionRight,
        access: Access,
        account: Callable[[], FxcmLogin],
        calendar: Calendar,
        *,
        timeouts: Timeouts | None = None,
        backoff: BackoffSettings,
    ) -> None:
        self._right = right
        self._access = access
        self._account = account
        self._calendar = calendar
        self._timeouts = timeouts
        self.backoff = BackoffController(
            "fxcm_history", backoff.fxcm_history, access.clock, random.random
        )
        self._failure: CollectorError | None = None
        self._tried: FxcmLogin | None = None
        self._login_failed = False
        self._client: FxcmClient | None = None
        self._entering = asyncio.Lock()
        self._health = SessionHealth()
        # What a session begins with is known: only changes are reported.
        self._reported = (self._health.state(is_open=True), self._health.reason)
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_market_open(self) -> bool:
        return self._calendar.is_open(self._access.clock.wall_ms())

    @property
    def state(self) -> SessionState:
        return self._health.state(is_open=self.is_market_open)

    async def client(self) -> FxcmClient:
        """Logged in. Raises SessionNotHeld, or why the login failed."""
        async with self._entering:
            if self._right.left() <= 0:
                raise SessionNotHeld("fxcm: the session is not held by this worker")
            client = await self._made()
            if not client.is_logged_in:
                self.refuse_while_paused()
                self._tried = self._account()
                try:
                    await client.login(self._tried)
                except FAILURES as error:
                    self._login_failed = True
                    self.failed(error)
                    raise
                if self._login_failed:
                    # Failed calls are made good by a call alone: each login costs the server.
                    self._succeeded()
                self._change(self._health.logged_in())
            return client

    def data_arrived(self) -> None:
        self._succeeded()
        self._change(self._health.data_arrived())

    def _succeeded(self) -> None:
        if self.backoff.state.active:
            self.backoff.success()
            self._diagnose()
        self._failure, self._login_failed = None, False

    def failed(self, error: CollectorError) -> None:
        """A login or a request failed: a pause begins."""
        self._failure = error
        self.backoff.fail(kind_of(error))
        self._diagnose()
        self._change(self._health.failed(str(error)))

    def _diagnose(self) -> None:
        self._right.diagnose({"backoff": backoff_diag([self.backoff])})

    def refuse_while_paused(self) -> None:
        """Raises the last failure again as long as its pause lasts.

        A refused password is not tried again however long it takes, and another one at once.
        """
        if isinstance(self._failure, KeyRefused):
            if self._account() == self._tried:
                raise KeyRefused(str(self._failure))
            return
        if self._failure is None or not self.backoff.paused:
            return
        wait_ms = round(self.backoff.remaining_seconds * 1000)
        raise ExchangeUnavailable(str(self._failure), retry_after_ms=wait_ms)

    async def close(self) -> None:
        """Logs out."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    async def _made(self) -> FxcmClient:
        if self._client is None:
            interpreter = await find_interpreter(self._access.environ)
            self._client = FxcmClient(
                interpreter,
                self._access.home / "fxcm",
                self._access.environ,
                self._right.left,
                on_event=self._on_event,
                timeouts=self._timeouts,
            )
            self._looking = asyncio.create_task(self._keep_looking(), name="fxcm:market")
        return self._client

    def _on_event(self, event: Event | SidecarEnded) -> None:
        if isinstance(event, SidecarEnded):
            self._change(self._health.ended(str(event.cause)))
            if not event.expected:
                _log.warning(
                    "fxcm_sidecar_ended", cause=str(event.cause), stderr=list(event.stderr[-3:])
                )
        elif isinstance(event, SessionStatus) and event.status == "CONNECTED":
            self._change(self._health.logged_in())
        elif isinstance(event, SessionStatus) and event.status == "RECONNECTING":
            self._change(self._health.failed("the SDK is reconnecting"))
        elif isinstance(event, SidecarError):
            _log.warning("fxcm_sidecar_error", kind=event.kind, error=event.message)

    async def _keep_looking(self) -> None:
        """The market opens and closes, and ticks arrive, without any request."""
        delivered = 0
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            before, delivered = delivered, self._delivered()
            # Ticks do not make up for history that failed.
            arrived = delivered > before and not self._health.failing
            self._change(self._health.data_arrived() if arrived else self._health)

    def _delivered(self) -> int:
        return 0 if self._client is None else self._client.ticks.counts.delivered

    def _change(self, health: SessionHealth) -> None:
        """Reports the state where it, or its reason, is another one than before."""
        is_open = self.is_market_open
        self._health = health.market(is_open=is_open)
        now = (self._health.state(is_open=is_open), self._health.reason)
        if now != self._reported:
            self._reported = now
            self._right.report(*now)
