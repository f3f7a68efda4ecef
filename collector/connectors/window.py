"""How many tokens a window has left. Pure arithmetic on the numbers a connector document holds.

A *fixed* window counts from its start and forgets everything when it ends. Exchanges do not count
like that: they look back one period from every request, and a burst on each side of a fixed
window's end shows them up to twice the limit. A *sliding* window keeps its grants in small bins
and counts the whole of every bin that a look back could touch, so that no sliding period ever
holds more than the limit.

Two more milliseconds-sized facts are part of the window's length. Bins are counted whole, which
costs one bin. And what an exchange sees is not when a token was granted but when the request
arrived, so the window is longer than the venue's by `margin_ms`: a request that is sent within
the margin of its grant cannot push the venue's own count over the limit.

The same arithmetic stands once more in `grant.py`, in MongoDB's expression language, because the
database decides; a property test holds the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["requests", "weight"]
Algorithm = Literal["sliding_window", "fixed_window"]

MOST_BINS = 128
MARGIN_FLOOR_MS = 125
MARGIN_SHARE = 64  # a sixty-fourth of the period
MARGIN_CEILING_SHARE = 8  # but never more than an eighth of it
_QUOTA_NAMES = {60_000: "minute_quota", 3_600_000: "hour_quota"}


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` of `unit` in any `period_ms`; some of it kept for priority callers."""

    unit: Unit
    limit: int
    period_ms: int
    priority_reserve: int = 0

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
    def margin_ms(self) -> int:
        """How late a request may leave after its grant."""
        wanted = max(MARGIN_FLOOR_MS, self.period_ms // MARGIN_SHARE)
        return max(1, min(wanted, self.period_ms // MARGIN_CEILING_SHARE))

    @property
    def span_ms(self) -> int:
        """How far back grants count."""
        return self.period_ms + self.margin_ms

    @property
    def bin_ms(self) -> int:
        return -(-self.span_ms // MOST_BINS)

    @property
    def bins(self) -> int:
        """How many finished bins count beside the current one: enough to hold the whole span."""
        return -(-self.span_ms // self.bin_ms)

    @property
    def quota_name(self) -> str:
        """The reason a denial by this window is given."""
        return _QUOTA_NAMES.get(self.period_ms, "window")

    def cost(self, weight: int) -> int:
        return 1 if self.unit == "requests" else weight


@dataclass(frozen=True, slots=True)
class Usage:
    """What a window's stored state amounts to at one moment, and how it will drain."""

    used: int
    drains: tuple[tuple[int, int], ...]
    """(moment, tokens that come back then), soonest first."""

    def free_at(self, room_for: int, limit: int, now_ms: int) -> int:
        """The first moment at which `room_for` more fit under `limit`."""
        used = self.used
        if used + room_for <= limit:
            return now_ms
        for moment, freed in self.drains:
            used -= freed
            if used + room_for <= limit:
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
    # The venue has counted more than we have. It tells no bins, so all of it drains at the end.
    return Usage(used=reported["used"], drains=((reported["until"], reported["used"]),))


def _fixed_usage(window: Window, state: dict[str, Any], now_ms: int) -> Usage:
    end = state.get("start", 0) + window.period_ms
    if end <= now_ms:
        return Usage(0, ())
    return Usage(state["used"], ((end, state["used"]),))


def _sliding_usage(window: Window, state: dict[str, Any], now_ms: int) -> Usage:
    current = now_ms - now_ms % window.bin_ms
    oldest = current - window.bins * window.bin_ms
    bins = [*state.get("bins", ()), {"t": state.get("t", 0), "n": state.get("cur", 0)}]
    live = [entry for entry in bins if entry["t"] >= oldest and entry["n"] > 0]
    # A bin stops counting when the current one is more than `bins` bins after it.
    leaves_after = (window.bins + 1) * window.bin_ms
    return Usage(
        used=sum(entry["n"] for entry in live),
        drains=tuple((entry["t"] + leaves_after, entry["n"]) for entry in live),
    )
