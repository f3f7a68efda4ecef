"""What `collector up` shows while it runs: a picture on a terminal, lines in a pipe."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.live import Live

from collector.cli.board import board, one_line
from collector.cli.trouble_lines import TroubleChanges, trouble_lines
from collector.clock import SystemClock
from collector.connectors.registry import ConnectorRegistry
from collector.errors import DatabaseUnavailable
from collector.jobs.history import count_backfills
from collector.jobs.network import network_of
from collector.jobs.queue import JobQueue
from collector.operations.shown.connector import shown_connector
from collector.operations.shown.job import shown_job
from collector.operations.shown.status import shown_trouble
from collector.operations.trouble_facts import troubles_now
from collector.operations.troubles import TroubleKind, no_database
from collector.progress import BarRate, slots_done
from collector.streams.live_board import LiveBoard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from collector.clock import Clock
    from collector.mongo.client import Database

REDRAW_SECONDS = 0.5
LINE_SECONDS = 5.0
STARTING_SECONDS = 30.0
"""Workers that `up` has just started are not missed before."""
MOST_JOBS = 200
"""Enough jobs to show; a fleet with thousands has the API."""


@dataclass(slots=True)
class UpScreen:
    """Shows a database's work until it is cancelled. The last picture stays."""

    database: Database
    console: Console
    say: Callable[[str], None]
    """Prints one line."""
    clock: Clock = field(default_factory=SystemClock)
    _begun: float = field(init=False)
    _pace: BarRate = field(default_factory=BarRate)
    _changes: TroubleChanges = field(default_factory=TroubleChanges)
    _found: Sequence[dict[str, Any]] = ()
    _looked_at: float = float("-inf")

    def __post_init__(self) -> None:
        self._begun = self.clock.monotonic()

    async def keep_showing(self) -> None:
        terminal = self.console.is_terminal
        with Live(console=self.console, auto_refresh=False) as live:
            while True:
                if terminal:
                    await self._draw(live)
                else:
                    await self.print_lines()
                await asyncio.sleep(REDRAW_SECONDS if terminal else LINE_SECONDS)

    async def print_lines(self) -> None:
        """How far the work is, and the troubles that began or ended since the last time."""
        now_ms = self.database.server_clock.now_ms()
        try:
            await self._look()
            jobs, connectors = await self._jobs(), await self._connectors()
        except DatabaseUnavailable as error:
            self._found = [self._away(error)]
            jobs, connectors = [], []
        for line in self._changes.lines(self._found, now_ms):
            self.say(line)
        if jobs or connectors:
            speed = self._pace.note(self.clock.monotonic(), sum(slots_done(job)[0] for job in jobs))
            self.say(one_line(jobs, connectors, speed, self._found))

    async def _draw(self, live: Live) -> None:
        now_ms = self.database.server_clock.now_ms()
        try:
            await self._look()
            jobs, connectors = await self._jobs(), await self._connectors()
            prices = await LiveBoard(self.database).mids()
            in_all = await count_backfills(self.database)
        except DatabaseUnavailable as error:
            live.update("\n".join(trouble_lines([self._away(error)], now_ms)), refresh=True)
            return
        speed = self._pace.note(self.clock.monotonic(), sum(slots_done(job)[0] for job in jobs))
        picture = board(
            jobs, connectors, speed, now_ms, prices, troubles=self._found, in_all=in_all
        )
        live.update(picture, refresh=True)

    async def _look(self) -> None:
        """Troubles change slowly: one look serves several pictures."""
        now = self.clock.monotonic()
        if now - self._looked_at < LINE_SECONDS / 2:
            return
        self._looked_at = now
        found = await troubles_now(self.database)
        if now - self._begun < STARTING_SECONDS:
            found = [each for each in found if each.kind is not TroubleKind.NO_WORKER]
        self._found = [shown_trouble(each) for each in found]

    async def _jobs(self) -> list[dict[str, Any]]:
        found = await JobQueue(self.database).find(limit=MOST_JOBS)
        return [shown_job(job) for job in found if network_of(job.exchange_id) is None]

    async def _connectors(self) -> list[dict[str, Any]]:
        now_ms = self.database.server_clock.now_ms()
        found = await ConnectorRegistry(self.database).all()
        return [shown_connector(connector, now_ms) for connector in found]

    def _away(self, error: DatabaseUnavailable) -> dict[str, Any]:
        return shown_trouble(no_database(str(error), self.database.away_since_ms))
