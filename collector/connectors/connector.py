"""The connector: one exchange's status, limits and what it has granted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from collector.connectors.circuit.gate import DEFAULTS, CircuitGate, CircuitSettings
from collector.connectors.lateness import Lateness
from collector.connectors.spaced_denial import SpacedRequest
from collector.connectors.window import FIXED_MARGIN_MS, Algorithm, Usage, Window, usage
from collector.exchanges.quirks.spacing import Spacing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from collector.connectors.grant_window import Want

Status = Literal["active", "paused", "deleted"]

GLOBAL = "all exchanges"
"""The name under which the optional limiter over all exchanges together is kept in `system`."""

DEFAULT_RESERVE_THRESHOLD = 0.7
SETTINGS = (
    "status",
    "paused_until",
    "notes",
    "rate_limit",
    "rate_limit_period_ms",
    "algorithm",
    "windows",
    "max_concurrent_jobs",
    "priority_reserve",
    "reserve_threshold",
    "spacing",
)
"""What operators and settings files change; counters and blocks are not among them."""
PAUSED_WITHOUT_END_MS = 5_000
"""When to look again at a pause that has no end: its end is unknown, and no request is sent."""

PROBED_LOOK_AGAIN_MS = 500
"""When to look again at a circuit gate whose probe is under way: its outcome may come early."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a new connector: the venue's figures, or an operator's."""

    rate_limit: int
    rate_limit_period_ms: int
    algorithm: Algorithm = "sliding_window"
    windows: tuple[Window, ...] = ()
    max_concurrent_jobs: int | None = None
    priority_reserve: int = 0
    reserve_threshold: float = DEFAULT_RESERVE_THRESHOLD
    """The share of a window from which on others leave the reserve to priority callers."""
    circuit: CircuitSettings = DEFAULTS
    spacing: Spacing | None = None
    """Requests for one key keep a distance, and the reserve goes by the fullest window."""

    @property
    def all_windows(self) -> tuple[Window, ...]:
        """The connector's own window first, then the venue's further ones."""
        own = Window("requests", self.rate_limit, self.rate_limit_period_ms, self.priority_reserve)
        return (own, *self.windows)

    def __post_init__(self) -> None:
        if self.rate_limit < 1 or self.rate_limit_period_ms < 1:
            raise ValueError("rate_limit and rate_limit_period_ms must be at least 1")
        if any(window.limit < 1 or window.period_ms < 1 for window in self.windows):
            raise ValueError("every window needs a limit and a period of at least 1")


@dataclass(frozen=True, slots=True)
class Denial:
    """Why there is no token, and when to request one again."""

    reason: str
    retry_at_ms: int


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector document as it was at one moment."""

    exchange_id: str
    status: Status
    limits: Limits
    document: Mapping[str, Any]
    lateness: Lateness
    """What workers have reported about the latency of the exchange."""
    all_windows: tuple[Window, ...]
    """The windows of the limits, with the measured margins."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Connector:
        limits = Limits(
            rate_limit=int(document["rate_limit"]),
            rate_limit_period_ms=int(document["rate_limit_period_ms"]),
            algorithm=document.get("algorithm") or "sliding_window",
            windows=tuple(Window.from_document(w) for w in document.get("windows") or ()),
            max_concurrent_jobs=document.get("max_concurrent_jobs"),
            priority_reserve=int(document.get("priority_reserve") or 0),
            reserve_threshold=document.get("reserve_threshold", DEFAULT_RESERVE_THRESHOLD),
            circuit=CircuitSettings.from_document(document.get("circuit") or {}),
            spacing=Spacing.from_document(document.get("spacing")),
        )
        lateness = Lateness.from_document(document)
        return cls(
            exchange_id=document["exchange_id"],
            status=document.get("status", "active"),
            limits=limits,
            document=document,
            lateness=lateness,
            all_windows=tuple(
                replace(window, measured_ms=lateness.margin(at, window).granted_ms)
                for at, window in enumerate(limits.all_windows)
            ),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What operators change of it, by the places in the document where it is."""
        circuit = {"circuit.settings": self._circuit.get("settings")}
        return {name: self.document.get(name) for name in SETTINGS} | circuit

    @property
    def creation_date(self) -> datetime:
        date: datetime = self.document["creation_date"]
        return date

    @property
    def token_life_ms(self) -> int:
        """How long after its request a token may be spent; the time it waits counts as lateness."""
        shortest = min(window.fixed_margin_ms for window in self.all_windows)
        return min(FIXED_MARGIN_MS, shortest)

    def usages(self, now_ms: int) -> tuple[Usage, ...]:
        """What each of `all_windows` has used."""
        states = (self.document.get("limiter") or {}).get("windows") or []
        padded = [*states, *({} for _ in self.all_windows)]
        return tuple(
            usage(window, state, self.limits.algorithm, now_ms)
            for window, state in zip(self.all_windows, padded, strict=False)
        )

    def stopped(self, now_ms: int) -> Denial | None:
        """Why nothing may be sent now whatever the budget, and when to look again; or None."""
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
        """The shared circuit gate, read-only."""
        return CircuitGate.restored(self.exchange_id, self._circuit, now_ms=lambda: now_ms)

    @property
    def last_good_ms(self) -> int | None:
        """When the exchange last gave a good answer, to a few seconds; None when it is unknown."""
        good = [each["t"] for each in self._circuit.get("bins") or () if each["ok"]]
        return max(good) * 1000 if good else None

    @property
    def _circuit(self) -> Mapping[str, Any]:
        return self.document.get("circuit") or {}

    def ranked(self, want: Want) -> Want:
        """The request with priority where its key goes first."""
        spacing = self.limits.spacing
        goes_first = spacing is not None and want.key in spacing.first
        return replace(want, priority=True) if goes_first else want

    def asked_together(self, wants: Sequence[Want]) -> list[Want]:
        """Those of a queue that go with one command: where requests are spaced, the first."""
        most = None if self.limits.spacing is None else 1
        return [self.ranked(want) for want in wants[:most]]

    def denial(self, want: Want, now_ms: int) -> Denial:
        """Why a request gets no token now, and when it may get one."""
        stopped = self.stopped(now_ms)
        if stopped is not None:
            return stopped
        if self.limits.spacing is None:
            return self._denial_by_windows(want.weight, want.priority, now_ms)
        request = SpacedRequest(self, self.limits.spacing, self.ranked(want))
        return Denial(request.refusal(now_ms) or "window", request.fits_at(now_ms))

    def _denial_by_windows(self, weight: int, priority: bool, now_ms: int) -> Denial:
        worst = Denial("window", now_ms)
        for window, counted in zip(self.all_windows, self.usages(now_ms), strict=True):
            cost, saved = window.cost(weight), self.saved(weight, now_ms)
            fits = partial(
                window.fits,
                cost=cost,
                by_priority=None if priority else counted.by_priority,
                threshold=self.limits.reserve_threshold,
                saved=window.cost(saved) if saved else 0,
            )
            free_at = counted.first(fits, now_ms)
            if free_at > worst.retry_at_ms:
                reserved = counted.used + cost <= window.limit and not saved
                worst = Denial("priority_reserve" if reserved else window.quota_name, free_at)
        return worst

    def saved(self, weight: int, now_ms: int) -> int:
        """The weight of a starving request that one of this weight has to leave room for, or 0."""
        saved = (self.document.get("limiter") or {}).get("saved") or {}
        live = saved.get("until", 0) > now_ms and saved["weight"] != weight
        return int(saved["weight"]) if live else 0

    def never_fits(self, weight: int) -> Window | None:
        """The window that is too small for a request of this weight, if there is one."""
        return next((w for w in self.all_windows if w.cost(weight) > w.limit), None)
