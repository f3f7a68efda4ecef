"""How often a run tries one page, and how long it pauses in between. Pure.

The run retries a page, the job retries a run, and nothing else retries. A page with a temporary
fault is requested again while the run's other pages continue; only when its tries are used up does
the run end, and then the job backs off.
"""

from __future__ import annotations

from dataclasses import dataclass

from collector.errors import ExchangeRefused, ExchangeUnavailable, RetryLater
from collector.store.port import Unavailable

PASSING = (ExchangeUnavailable, ExchangeRefused, Unavailable)
"""What may be gone a moment later. A spent budget, a ban or a lost database is not among them."""


@dataclass(frozen=True, slots=True)
class Tries:
    """At most `most` tries of one page; pauses of `base_seconds` x 2^n, fully jittered."""

    most: int = 5
    base_seconds: float = 0.2
    max_seconds: float = 5.0

    def pause(self, error: RetryLater, failures: int, spread: float) -> float | None:
        """Seconds to wait after the n-th failure of a page; None when the run has to end.

        `spread` is a number in [0, 1). A pause demanded by the exchange that is longer than a run's
        is left to the job.
        """
        asked_for = (error.retry_after_ms or 0) / 1000
        if failures >= self.most or asked_for > self.max_seconds:
            return None
        longest = min(self.base_seconds * 2.0 ** (failures - 1), self.max_seconds)
        return max(asked_for, longest * spread)
