"""A pause after failures without sleeping: the caller checks whether it is over.

Two are in use: `fxcm_history` for the history poller and `redis` for whatever publishes. While one
is paused its work is left out, and ticks and heartbeat go on. The first success resets it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from collector import metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.backoff import Backoff
    from collector.clock import Clock


@dataclass(frozen=True, slots=True)
class BackoffState:
    """`active` from a failure to the next success, also when the pause itself has passed."""

    sleep_seconds: float
    active: bool = False
    last_error_type: str | None = None
    fail_count: int = 0
    last_error_ms: int | None = None

    def shown(self) -> dict[str, Any]:
        """As the heartbeat carries it."""
        return {
            "active": self.active,
            "sleep_seconds": round(self.sleep_seconds, 3),
            "last_error_type": self.last_error_type,
            "fail_count": self.fail_count,
            "last_error_ts": None if self.last_error_ms is None else _iso(self.last_error_ms),
        }


class BackoffController:
    """`spread` gives numbers in [0, 1): the randomness of the jitter."""

    def __init__(
        self, name: str, policy: Backoff, clock: Clock, spread: Callable[[], float]
    ) -> None:
        self.name = name
        self._policy = policy
        self._clock = clock
        self._spread = spread
        self._paused_until = 0.0
        self._state = BackoffState(policy.base_seconds)

    @property
    def state(self) -> BackoffState:
        return self._state

    @property
    def remaining_seconds(self) -> float:
        """How much of the pause is left; 0 when the work may be tried."""
        if not self._state.active:
            return 0.0
        return max(0.0, self._paused_until - self._clock.monotonic())

    @property
    def paused(self) -> bool:
        return self.remaining_seconds > 0

    def fail(self, error: BaseException | str) -> float:
        """Counts a failure, and returns the pause that begins now, in seconds."""
        count = self._state.fail_count + 1
        delay = self._policy.delay(count, self._spread())
        self._paused_until = self._clock.monotonic() + delay
        metrics.FXCM_BACKOFF_EVENTS.labels(self.name).inc()
        metrics.FXCM_BACKOFF_SLEEP.labels(self.name).observe(delay)
        kind = error if isinstance(error, str) else type(error).__name__
        self._state = BackoffState(delay, True, kind, count, self._clock.wall_ms())
        return delay

    def success(self) -> None:
        self._state = BackoffState(self._policy.base_seconds)


def backoff_diag(controllers: Iterable[BackoffController]) -> dict[str, Any]:
    """`context.diag.backoff` of the heartbeat: each controller by its name."""
    return {each.name: each.state.shown() for each in controllers}


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
