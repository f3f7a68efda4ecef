"""How many tokens a window has left. Pure arithmetic on the numbers a connector document holds.

A *fixed* window counts from its start and forgets everything when it ends. Exchanges do not count
like that: they look back one period from every request, and a burst on each side of a fixed
window's end shows them up to twice the limit. A *sliding* window keeps its grants in small bins and
counts the whole of every bin that a look back could touch.

What an exchange counts is not when a token was granted but when the request arrived, and requests
do not all take equally long. So a grant counts for longer than a period, by a *margin*, and a
request that took longer than the margin covers is *charged again*: its token is counted once more,
from its answer on (in_flight.py). The margin is measured (lateness.py), so that a fast path costs
next to nothing.

Why no sliding period holds more than the limit
-----------------------------------------------
Let B be the shortest time from asking for a token to the answer, over all workers. A request is as
late as its own such time exceeds B: no later than that after the fastest one it arrived. It counts
as late when that is more than the margin, less the least round trip of a token, which stands
between asking and granting.

Suppose limit + 1 requests arrived within one period. When the last of them was granted, the slot of
at least one other was free already, so that one was granted more than period + margin before. To
arrive within a period of the last one it must have been later than the margin. So it was charged
again, not before it arrived; or it was still under way, and then its slot was never free, for what
is under way is charged every half period. Either way it still counted when the last one was
granted. That contradicts that its slot was free.

Three cases are not covered and cannot be from here: requests under way of a worker that was killed,
frozen or cut off, because no process charges them; the first requests of a worker that is nearer to
the exchange than all before it, because B was too long; and a B that is too long because no request
was fast on every leg of its way.

`grant.py` repeats this arithmetic in MongoDB's expression language, because the database decides; a
property test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from collector.durations import HOUR_MS, MINUTE_MS
from collector.exchanges.quirks.spacing import load_level

if TYPE_CHECKING:
    from collections.abc import Callable

Unit = Literal["requests", "weight"]
Algorithm = Literal["sliding_window", "fixed_window"]

FEW_GRANTS = 128
"""A window with no more grants than this can afford fine bins: only those with grants are kept."""
FINE_BINS, COARSE_BINS = 1024, 128
FIXED_MARGIN_MS = 125
FIXED_MARGIN_SHARE = 64  # a sixty-fourth of the period
FIXED_CEILING_SHARE = 8  # but never more than an eighth of it
SHORT_PERIOD_MS = 1_000
_QUOTA_NAMES = {MINUTE_MS: "minute_quota", HOUR_MS: "hour_quota"}


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` of `unit` in any `period_ms`; some of it kept for priority callers."""

    unit: Unit
    limit: int
    period_ms: int
    priority_reserve: int = 0
    measured_ms: int | None = None
    """The margin that was measured; None before that."""

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Window:
        return cls(
            unit=document["unit"],
            limit=int(document["limit"]),
            period_ms=int(document["period_ms"]),
            priority_reserve=int(document.get("priority_reserve") or 0),
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "limit": self.limit,
            "period_ms": self.period_ms,
            "priority_reserve": self.priority_reserve,
        }

    @property
    def fixed_margin_ms(self) -> int:
        """What holds until enough answers are known."""
        wanted = max(FIXED_MARGIN_MS, self.period_ms // FIXED_MARGIN_SHARE)
        return max(1, min(wanted, self.period_ms // FIXED_CEILING_SHARE))

    @property
    def largest_margin_ms(self) -> int:
        """No measured margin is larger: an eighth of the period, a quarter of a short one."""
        share = 4 if self.period_ms <= SHORT_PERIOD_MS else 8
        return max(self.fixed_margin_ms, self.period_ms // share)

    @property
    def margin_ms(self) -> int:
        """How much longer than a period a grant counts."""
        if self.measured_ms is None:
            return self.fixed_margin_ms
        return min(self.measured_ms, self.largest_margin_ms)

    @property
    def span_ms(self) -> int:
        """How far back grants count."""
        return self.period_ms + self.margin_ms

    @property
    def bin_ms(self) -> int:
        """The width of a bin, whatever the margin is, so that bins outlive a change of it."""
        most = FINE_BINS if self.limit <= FEW_GRANTS else COARSE_BINS
        return -(-(self.period_ms + self.largest_margin_ms) // most)

    @property
    def bins(self) -> int:
        """How many finished bins count beside the current one: enough to hold the whole span."""
        return -(-self.span_ms // self.bin_ms)

    @property
    def kept_bins(self) -> int:
        """How many are kept: those that would count with the largest margin."""
        return -(-(self.period_ms + self.largest_margin_ms) // self.bin_ms)

    @property
    def quota_name(self) -> str:
        """The reason a denial by this window is given."""
        return _QUOTA_NAMES.get(self.period_ms, "window")

    def cost(self, weight: int) -> int:
        return 1 if self.unit == "requests" else weight

    def level(self, threshold: float) -> int:
        """The load from which on others leave the reserve to priority callers."""
        return load_level(threshold, self.limit)

    def fits(
        self, used: int, cost: int, *, by_priority: int | None, threshold: float, saved: int = 0
    ) -> bool:
        """Whether `cost` more may be granted; `by_priority` is None for a caller with priority.

        Other callers may fill the window up to the limit minus the reserve; what priority callers
        have used already counts against the reserve. Below the threshold there is no reserve. What
        is `saved` for a starving request is for that request alone.
        """
        after = used + saved + cost
        if after > self.limit:
            return False
        if by_priority is None or used < self.level(threshold):
            return True
        return after <= self.limit - max(0, self.priority_reserve - by_priority)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a window's stored state amounts to at one moment, and when tokens come back."""

    used: int
    drains: tuple[tuple[int, int], ...]
    """(moment, tokens that come back then), soonest first."""
    by_priority: int = 0
    """How much of it priority callers had."""

    def first(self, fits: Callable[[int], bool], now_ms: int) -> int:
        """The first moment at which what is left in use by then satisfies `fits`."""
        used = self.used
        if fits(used):
            return now_ms
        for moment, freed in self.drains:
            used -= freed
            if fits(used):
                return moment
        return self.drains[-1][0] if self.drains else now_ms


def usage(window: Window, state: dict[str, Any], algorithm: Algorithm, now_ms: int) -> Usage:
    """Reads the stored state of a window at `now_ms`, which must not be before its last grant."""
    counted = (
        _fixed_usage(window, state, now_ms)
        if algorithm == "fixed_window"
        else _sliding_usage(window, state, now_ms)
    )
    reported = state.get("reported") or {}
    if reported.get("until", 0) <= now_ms or reported.get("used", 0) <= counted.used:
        return counted
    # The venue has counted more than we have. It reports no bins, so all of it expires at the end.
    drains = ((reported["until"], reported["used"]),)
    return Usage(used=reported["used"], drains=drains, by_priority=counted.by_priority)


def _fixed_usage(window: Window, state: dict[str, Any], now_ms: int) -> Usage:
    end = state.get("start", 0) + window.period_ms
    if end <= now_ms:
        return Usage(0, ())
    return Usage(state["used"], ((end, state["used"]),), state.get("pcur", 0))


def _sliding_usage(window: Window, state: dict[str, Any], now_ms: int) -> Usage:
    current = now_ms - now_ms % window.bin_ms
    oldest = current - window.bins * window.bin_ms
    latest = {"t": state.get("t", 0), "n": state.get("cur", 0), "p": state.get("pcur", 0)}
    bins = [*state.get("bins", ()), latest]
    live = [entry for entry in bins if entry["t"] >= oldest and entry["n"] > 0]
    # A bin stops counting when the current one is more than `bins` bins after it.
    leaves_after = (window.bins + 1) * window.bin_ms
    return Usage(
        used=sum(entry["n"] for entry in live),
        drains=tuple((entry["t"] + leaves_after, entry["n"]) for entry in live),
        by_priority=sum(entry.get("p", 0) for entry in live),
    )
