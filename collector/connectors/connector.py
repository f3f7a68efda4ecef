"""The connector: one exchange's status, limits and what it has granted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from collector.connectors.circuit import DEFAULTS, CircuitGate, CircuitSettings
from collector.connectors.window import Algorithm, Usage, Window, usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Status = Literal["active", "paused", "deleted"]

GLOBAL = "all exchanges"
"""The name under which the optional limiter over all exchanges together is kept in `system`."""

DEFAULT_RESERVE_THRESHOLD = 0.7
PAUSED_WITHOUT_END_MS = 5_000
"""When to look again at a pause that has no end: nobody knows, and nobody asks the exchange."""

PROBED_LOOK_AGAIN_MS = 500
"""When to look again at a circuit gate whose probe is out: it may be back long before its time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a new connector is given: the venue's figures, or an operator's."""

    rate_limit: int
    rate_limit_period_ms: int
    algorithm: Algorithm = "sliding_window"
    windows: tuple[Window, ...] = ()
    max_concurrent_jobs: int | None = None
    priority_reserve: int = 0
    reserve_threshold: float = DEFAULT_RESERVE_THRESHOLD
    """The share of a window from which on others leave the reserve to priority callers."""
    circuit: CircuitSettings = DEFAULTS

    def __post_init__(self) -> None:
        if self.rate_limit < 1 or self.rate_limit_period_ms < 1:
            raise ValueError("rate_limit and rate_limit_period_ms must be at least 1")
        if any(window.limit < 1 or window.period_ms < 1 for window in self.windows):
            raise ValueError("every window needs a limit and a period of at least 1")


@dataclass(frozen=True, slots=True)
class Denial:
    """Why there is no token, and when to ask again."""

    reason: str
    retry_at_ms: int


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector document as it was at one moment."""

    exchange_id: str
    status: Status
    limits: Limits
    document: Mapping[str, Any]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Connector:
        return cls(
            exchange_id=document["exchange_id"],
            status=document.get("status", "active"),
            limits=Limits(
                rate_limit=int(document["rate_limit"]),
                rate_limit_period_ms=int(document["rate_limit_period_ms"]),
                algorithm=document.get("algorithm") or "sliding_window",
                windows=tuple(Window.from_document(w) for w in document.get("windows") or ()),
                max_concurrent_jobs=document.get("max_concurrent_jobs"),
                priority_reserve=int(document.get("priority_reserve") or 0),
                reserve_threshold=document.get("reserve_threshold", DEFAULT_RESERVE_THRESHOLD),
                circuit=CircuitSettings.from_document(document.get("circuit") or {}),
            ),
            document=document,
        )

    @property
    def creation_date(self) -> datetime:
        date: datetime = self.document["creation_date"]
        return date

    @property
    def all_windows(self) -> tuple[Window, ...]:
        """The seed's own window first, then the venue's further ones."""
        first = Window(
            "requests",
            self.limits.rate_limit,
            self.limits.rate_limit_period_ms,
            self.limits.priority_reserve,
        )
        return (first, *self.limits.windows)

    @property
    def margin_ms(self) -> int:
        """How late a request may leave after its grant, by the strictest window."""
        return min(window.margin_ms for window in self.all_windows)

    def usages(self, now_ms: int) -> tuple[Usage, ...]:
        """What each of `all_windows` has used."""
        states = (self.document.get("limiter") or {}).get("windows") or []
        padded = [*states, *({} for _ in self.all_windows)]
        return tuple(
            usage(window, state, self.limits.algorithm, now_ms)
            for window, state in zip(self.all_windows, padded, strict=False)
        )

    def stopped(self, now_ms: int) -> Denial | None:
        """Why nothing may be sent now whatever the budget, or None. Each reason ends by itself."""
        paused_until: int | None = self.document.get("paused_until")
        if self.status == "deleted":
            return Denial("deleted", now_ms + PAUSED_WITHOUT_END_MS)
        if self.status == "paused":
            if paused_until is None:
                return Denial("paused", now_ms + PAUSED_WITHOUT_END_MS)
            if paused_until > now_ms:
                return Denial("paused", paused_until)
        blocked_until = self.document.get("blocked_until") or 0
        if blocked_until > now_ms:
            return Denial("blocked", blocked_until)
        tripped_until = self._circuit.get("tripped_until") or 0
        if tripped_until > now_ms:
            return Denial("circuit", tripped_until)
        probe_until = (self._circuit.get("probe") or {}).get("until") or 0
        if probe_until > now_ms:
            return Denial("circuit", min(probe_until, now_ms + PROBED_LOOK_AGAIN_MS))
        return None

    def circuit(self, now_ms: int) -> CircuitGate:
        """The shared circuit gate, to look at."""
        return CircuitGate.restored(self.exchange_id, self._circuit, now_ms=lambda: now_ms)

    @property
    def _circuit(self) -> Mapping[str, Any]:
        return self.document.get("circuit") or {}

    def denial(self, weight: int, priority: bool, now_ms: int) -> Denial:
        """Why a request of this weight gets no token now, and the first moment it may."""
        stopped = self.stopped(now_ms)
        if stopped is not None:
            return stopped
        threshold = self.limits.reserve_threshold
        worst = Denial("window", now_ms)
        for window, counted in zip(self.all_windows, self.usages(now_ms), strict=True):
            cost = window.cost(weight)
            limit, reason = window.limit, window.quota_name
            if (
                not priority
                and counted.used + cost <= window.limit
                and counted.used >= threshold * window.limit
            ):
                limit, reason = window.limit - window.priority_reserve, "priority_reserve"
            free_at = counted.free_at(cost, limit, now_ms)
            if free_at > worst.retry_at_ms:
                worst = Denial(reason, free_at)
        return worst

    def never_fits(self, weight: int) -> Window | None:
        """The window that a request of this weight can never pass, if there is one."""
        return next((w for w in self.all_windows if w.cost(weight) > w.limit), None)
