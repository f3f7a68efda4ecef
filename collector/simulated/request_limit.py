"""The exchange's own rate limit: a true sliding window, and bans for clients that go on."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """So many requests, and so much weight, in any `period_ms`; None is no limit.

    Without `enforce` an excess is only recorded. With it the answer is 429, and after `ban_after`
    of those a ban of `ban_seconds`.
    """

    requests: int | None = None
    weight: int | None = None
    period_ms: int = 60_000
    enforce: bool = False
    ban_after: int | None = None
    ban_seconds: int = 120


@dataclass(frozen=True, slots=True)
class Verdict:
    """The limit's verdict on a request: `status` 200 lets it in. `violation` is for the journal."""

    status: int = 200
    violation: bool = False
    retry_after_s: int = 0


_WELCOME = Verdict()
_EXCESS = Verdict(violation=True)


class RequestLimit:
    """Counts every request that arrives, those it refuses too, as Binance does."""

    def __init__(self, limit: Limit) -> None:
        self.limit = limit
        self._arrivals: deque[tuple[float, int]] = deque()
        self._weight = 0
        self._strikes = 0
        self._banned_until_ms = -math.inf
        self._ban_seconds = 0

    def admit(self, at_ms: float, weight: int) -> Verdict:
        """Judges a request that arrives now. Times must not run backwards."""
        self._count(at_ms, weight)
        if at_ms < self._banned_until_ms:
            self.ban(at_ms, self._ban_seconds)
            return Verdict(418, violation=True, retry_after_s=self._ban_seconds)
        if not self._over():
            return _WELCOME
        if not self.limit.enforce:
            return _EXCESS
        self._strikes += 1
        if self.limit.ban_after is not None and self._strikes >= self.limit.ban_after:
            self.ban(at_ms, self.limit.ban_seconds)
            return Verdict(418, violation=True, retry_after_s=self._ban_seconds)
        wait_ms = self._arrivals[0][0] + self.limit.period_ms - at_ms
        return Verdict(429, violation=True, retry_after_s=max(1, math.ceil(wait_ms / 1000)))

    def ban(self, at_ms: float, seconds: int) -> None:
        """Refuses every request for `seconds` from now; each one that comes starts it anew."""
        self._ban_seconds = seconds
        self._banned_until_ms = at_ms + seconds * 1000
        self._strikes = 0

    def _count(self, at_ms: float, weight: int) -> None:
        arrivals = self._arrivals
        while arrivals and at_ms - arrivals[0][0] >= self.limit.period_ms:
            self._weight -= arrivals.popleft()[1]
        arrivals.append((at_ms, weight))
        self._weight += weight

    def _over(self) -> bool:
        requests, weight = self.limit.requests, self.limit.weight
        too_many = requests is not None and len(self._arrivals) > requests
        return too_many or (weight is not None and self._weight > weight)
