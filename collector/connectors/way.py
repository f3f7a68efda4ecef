"""The path to one exchange as one process sees it: requests under way, and how late answers are.

Requests that hang are charged on time (in_flight.py), and lateness is reported every few seconds to
the histogram that all workers share. The process that reports also chooses the margins from it when
that is due (lateness.py); of two that do so at once, one wins.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pymongo import ReturnDocument

from collector import metrics
from collector.connectors.connector import Connector
from collector.connectors.grant import grant_filter
from collector.connectors.in_flight import NEVER, InFlight
from collector.connectors.lateness import Report, report_pipeline
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.clock import Clock
    from collector.connectors.token import Token
    from collector.mongo.client import Collection
    from collector.mongo.server_clock import ServerClock

REPORT_SECONDS = 2.0
"""How long lateness is gathered before it is reported."""
LEAST_LOOK_SECONDS = 0.01
WITHOUT_COUNTS = {"limiter.windows.bins": 0, "limiter.spaced": 0, "limiter.left": 0}
"""Reads a connector's limits and margins without what the limiter has counted."""


@dataclass(slots=True)
class Way:
    """Keeps the account. `charged` is called when there is something to charge."""

    collection: Collection
    exchange_id: str
    clock: Clock
    server_clock: ServerClock
    charged: Callable[[], None]
    flying: InFlight = field(default_factory=InFlight)
    _enough: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the answers that are not reported yet allow the first margin to be chosen."""
    _watching: asyncio.TimerHandle | None = None
    _reporting: asyncio.Task[None] | None = None

    def sent(self, token: Token, weight: int) -> None:
        """A request leaves with this token."""
        self.flying.leaves(token.number, token.asked_at, weight, token.resets_at)
        if self._watching is None:
            self._watch()

    def answered(self, token: Token, at: float | None, *, learn: bool) -> None:
        """Its answer or a failure came `at` this moment; None when nobody waited for it."""
        self.flying.came_back(token.number, at, learn=learn)
        self._notify_charges()
        lateness = self.flying.lateness
        if not any(lateness.margins) and self.flying.report.answers >= lateness.lacking:
            self._enough.set()
        if self.flying.report and (self._reporting is None or self._reporting.done()):
            self._reporting = asyncio.create_task(
                self._report(), name=f"lateness:{self.exchange_id}"
            )

    def token_took(self, seconds: float) -> None:
        """A command for tokens had its answer after so long."""
        report = self.flying.report
        report.token_ms = min(report.token_ms, seconds * 1000)

    def wasted(self, token: Token) -> None:
        """Its request did not leave after all."""
        self.flying.never_left(token.number)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)

    def _watch(self) -> None:
        """Charges what hangs, and comes back when the next may be due."""
        self._watching = None
        next_look = self.flying.charge_the_hanging(self.clock.monotonic())
        self._notify_charges()
        if next_look is not None and next_look < NEVER:
            seconds = max(LEAST_LOOK_SECONDS, next_look - self.clock.monotonic())
            self._watching = asyncio.get_running_loop().call_later(seconds, self._watch)

    def _notify_charges(self) -> None:
        if any(self.flying.charges):
            self.charged()

    async def _report(self) -> None:
        """Runs as long as there are answers to report, or a margin waits for its time."""
        pause = REPORT_SECONDS
        while self.flying.report or pause < REPORT_SECONDS:
            await self._gathered(pause)
            report, self.flying.report = self.flying.report, Report()
            self.flying.report.token_ms = report.token_ms
            pause = REPORT_SECONDS
            try:
                pause = await self._write(report)
            except DatabaseUnavailable:
                continue  # Logged by mongo.client; a histogram lacks a few answers.

    async def _gathered(self, seconds: float) -> None:
        """Returns after so long, or when the first margin can be chosen: until then grants keep to
        the fixed one, an eighth of a budget of one second.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._enough.wait()
        self._enough.clear()

    async def _write(self, report: Report) -> float:
        """Reports, and chooses margins when that is due; returns when to do so again."""
        document = await self.collection.find_one_and_update(
            {"exchange_id": self.exchange_id},
            report_pipeline(report),
            projection=WITHOUT_COUNTS,
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return REPORT_SECONDS
        connector = Connector.from_document(document)
        lateness = self.flying.lateness = connector.lateness
        now_ms = self.server_clock.now_ms()
        margins = lateness.chosen(connector.all_windows, now_ms)
        for window, margin in zip(connector.all_windows, margins, strict=False):
            labels = (self.exchange_id, window.unit, str(window.period_ms))
            metrics.RATE_LIMIT_MARGIN.labels(*labels).set(margin.judged_ms / 1000)
        if margins and margins != lateness.margins:
            judged = [margin.judged_ms for margin in margins]
            is_new = judged != [margin and margin.judged_ms for margin in lateness.margins]
            chosen = {
                f"limiter.windows.{at}.margin": margin.to_document()
                for at, margin in enumerate(margins)
            }
            # An array that is not there, or is shorter, must not become an object.
            stored = {"limiter.windows": {"$size": len(margins)}}
            await self.collection.update_one(
                {"$and": [grant_filter(connector), stored]},
                {
                    "$set": {
                        **chosen,
                        "lateness.chosen_at": now_ms if is_new else lateness.chosen_at,
                    }
                },
            )
        waits = [m.settles_at - now_ms for m in margins if m.judged_ms < m.granted_ms]
        return min([REPORT_SECONDS, *(max(LEAST_LOOK_SECONDS, ms / 1000) for ms in waits)])
