"""Reports the outcome of each request to the permit, exactly once, even if the caller is cancelled.

An answer that ccxt accepts may still be broken. Where the adapter judges the rows of an answer
itself, the permit receives the outcome after that judgement, so the circuit never counts an answer
as good that is refused right after.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.errors import ExchangeUnavailable
from collector.exchanges.reporting import report

if TYPE_CHECKING:
    from collector.clock import Clock
    from collector.exchanges.ccxt.visit import Errand, Visit
    from collector.exchanges.port import Health, Permit


@dataclass(frozen=True, slots=True)
class OutcomeReports:
    """Reports to one permit."""

    permit: Permit
    clock: Clock

    async def answered(self, visit: Visit, errand: Errand) -> None:
        """ccxt accepted the answer. A visit that judges it reports later."""
        errand.ended_at = self.clock.monotonic()
        if visit.judging:
            visit.unjudged.append(errand)
        else:
            await self._report(errand, "good")

    async def judged(self, visit: Visit, failure: BaseException | None = None) -> None:
        """Reports the answers that were still to be judged.

        Those that another request followed were good. `failure` is about the last one: what was
        found in it, or the cancellation of its judgement.
        """
        while visit.unjudged:
            errand = visit.unjudged.pop(0)
            if failure is None or visit.unjudged:
                await self._report(errand, "good")
            else:
                await self.failed(errand, failure)
            errand.forget()

    async def failed(self, errand: Errand, failure: BaseException) -> None:
        """`failure` is one of Collector's errors, or a cancellation, which proves nothing."""
        if isinstance(failure, Exception):
            failed = isinstance(failure, ExchangeUnavailable)
            await self._report(errand, "bad" if failed else "unknown", error=failure)
            return
        # The cancellation has to be raised, whatever the permit does with the report.
        with suppress(Exception):
            await self._report(errand, "unknown", given_up=errand.arrived_at is None)

    async def _report(
        self,
        errand: Errand,
        health: Health,
        *,
        error: Exception | None = None,
        given_up: bool = False,
    ) -> None:
        """Reports to the permit what was sent."""
        if errand.grant is None:
            return
        now = errand.ended_at or self.clock.monotonic()
        # A time-out and a broken connection are answers, too: what was sent has arrived by now.
        arrived_at = None if given_up else (errand.arrived_at or now)
        answer = replace(errand.answer(now, health), error=error, arrived_at=arrived_at)
        await report(self.permit, answer)
