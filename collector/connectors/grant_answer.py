"""What a connector answered to one command for tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Connector
from collector.connectors.in_flight import NEVER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from collector.connectors.lateness import Lateness


@dataclass(frozen=True, slots=True)
class GrantAnswer:
    """The answer, the limits of its command, and when that was sent, on our own clock."""

    connector: Connector
    document: Mapping[str, Any]
    nonce: str
    sent: float
    wanted: int
    """How many waiting requests the command was for."""
    latest_ms: int | None = None
    """The server's time after which the command was late."""

    @property
    def written(self) -> bool:
        """Whether the command changed the windows: it granted or charged something."""
        return self._limiter.get("nonce") == self.nonce

    @property
    def came_late(self) -> bool:
        """Whether the server carried it out too late by its clock, so that it changed nothing."""
        return self.now is not None and self.latest_ms is not None and self.now_ms > self.latest_ms

    @property
    def granted(self) -> int:
        """How many of the waiting requests may go."""
        return int(self._limiter["granted"]) if self.written else 0

    @property
    def now(self) -> datetime | None:
        """The server's time; None in an answer that was lost once.

        The driver repeats such a command, and the server repeats the grant without computing the
        rest.
        """
        return self.document.get("now")

    @property
    def now_ms(self) -> int:
        """The same in epoch milliseconds; else when it was granted."""
        return self.clock_ms if self.now is None else round(self.now.timestamp() * 1000)

    @property
    def clock_ms(self) -> int:
        """When the connector granted anything last."""
        return int(self._limiter.get("clock") or 0)

    @property
    def decided_ms(self) -> int:
        """The time that the statement used: the clock never runs backwards."""
        return max(self.now_ms, self.clock_ms)

    @property
    def state(self) -> Connector:
        """The connector as the statement left it."""
        return Connector.from_document({**self.connector.document, **self.document})

    @property
    def counted(self) -> dict[tuple[str, int], int]:
        """What each window has counted."""
        counts = self.document.get("counted") or ()
        windows = self.connector.all_windows
        return {(w.unit, w.period_ms): n for w, n in zip(windows, counts, strict=False)}

    @property
    def lateness(self) -> Lateness:
        """What is known of the exchange's latency, with the shortest times as of this answer."""
        return self.connector.lateness.with_least(
            (self.document.get("lateness") or {}).get("least")
        )

    @property
    def resets_at(self) -> tuple[float, ...]:
        """When the windows of the grant end, on our own clock, no later than they really do."""
        windows = self.connector.all_windows
        if self.connector.limits.algorithm == "sliding_window":
            return (NEVER,) * len(windows)
        starts = self.document.get("starts") or [self.now_ms] * len(windows)
        return tuple(
            self.sent + (start + window.period_ms - self.now_ms) / 1000
            for start, window in zip(starts, windows, strict=False)
        )

    @property
    def _limiter(self) -> Mapping[str, Any]:
        return self.document.get("limiter") or {}
