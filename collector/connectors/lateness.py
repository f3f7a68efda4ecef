"""How late requests are, and the margin chosen from it. Pure; lane.py sends the statements.

For every answer it is known how long it took since its token was requested. The excess over the
fastest one is its lateness: an upper bound of how much later than the fastest its request arrived.
Workers add their answers to one histogram in the connector, which holds the last few hundred, and
to the minimum of the last ten minutes. The margin of each window is chosen from the histogram: a
longer one costs that much of every period, a shorter one charges more requests again, and the sum
of both is minimised.

A larger margin holds at once. With a smaller one, requests are judged by it at once, while grants
keep to the larger one until the last request that was judged by it can no longer matter.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.mongo.client import NOW_MS, Document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.connectors.window import Window

EDGES_MS = (
    *(1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 200),
    *(250, 300, 400, 500, 750, 1_000, 1_500, 2_500, 5_000, 10_000),
)
"""Upper ends of the histogram's bins; what is later than the last one is in a bin of its own."""
LEAST_MS = 300_000
"""How long a generation of the minimum lasts; two are kept, of the histogram too."""
HISTOGRAM_MS, HISTOGRAM_ANSWERS = 20_000, 200
"""A generation of the histogram ends at this age if it has this many answers, else at LEAST_MS."""
ENOUGH_ANSWERS = 50
CHOSEN_FOR_MS = 10_000
WORTH_A_CHANGE = 0.2
SMALLEST_MARGIN_MS = 10


@dataclass(slots=True)
class Report:
    """What a process has seen and not reported yet."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(EDGES_MS) + 1))
    least_ms: float = float("inf")
    token_ms: float = float("inf")

    def __bool__(self) -> bool:
        return any(self.counts)

    @property
    def answers(self) -> int:
        return sum(self.counts)

    def add(self, took_ms: float, late_ms: float) -> None:
        self.least_ms = min(self.least_ms, took_ms)
        self.counts[bisect_left(EDGES_MS, late_ms)] += 1


@dataclass(frozen=True, slots=True)
class Margin:
    """The margin of one window: what its requests are judged by, and what its grants keep to."""

    judged_ms: int
    granted_ms: int
    settles_at: int = 0
    """When grants may use `judged_ms` as well, while it is the smaller one."""

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Margin:
        return cls(document["judged_ms"], document["granted_ms"], document["settles_at"])

    def to_document(self) -> Document:
        return {
            "judged_ms": self.judged_ms,
            "granted_ms": self.granted_ms,
            "settles_at": self.settles_at,
        }

    def within(self, most_ms: int) -> Margin:
        """No larger than a window allows whose period is shorter now."""
        return replace(
            self, judged_ms=min(self.judged_ms, most_ms), granted_ms=min(self.granted_ms, most_ms)
        )

    def settled(self, now_ms: int) -> Margin:
        """With grants at the smaller margin, once the larger one no longer matters."""
        if self.judged_ms < self.granted_ms and now_ms >= self.settles_at:
            return replace(self, granted_ms=self.judged_ms)
        return self

    def towards(self, wanted_ms: int, window: Window, now_ms: int) -> Margin:
        """The margin after another one was computed; unchanged when the difference is too small."""
        if abs(wanted_ms - self.judged_ms) < WORTH_A_CHANGE * self.judged_ms:
            return self
        if wanted_ms >= self.granted_ms:
            return Margin(wanted_ms, wanted_ms)
        settles_at = now_ms + window.period_ms + self.granted_ms
        return Margin(wanted_ms, self.granted_ms, settles_at)


@dataclass(frozen=True, slots=True)
class Lateness:
    """What all workers together have reported about an exchange, and the margins it has led to."""

    least_ms: float = float("inf")
    token_ms: float = float("inf")
    counts: tuple[int, ...] = ()
    chosen_at: int = 0
    margins: tuple[Margin | None, ...] = ()
    """By window; each is stored with what its window has counted, so that the two stay together."""

    @classmethod
    def from_document(cls, connector: Mapping[str, Any]) -> Lateness:
        stored = connector.get("lateness") or {}
        counts = _generations(stored.get("histogram"))
        found = cls(
            counts=_enough([each["counts"] for each in counts]),
            chosen_at=stored.get("chosen_at", 0),
            margins=tuple(
                None if margin is None else Margin.from_document(margin)
                for margin in stored_margins(connector)
            ),
        )
        return found.with_least(stored.get("least"))

    def with_least(self, stored: Mapping[str, Any] | None) -> Lateness:
        """With the shortest times that all workers together have reported by now."""
        leasts = _generations(stored)
        return replace(
            self,
            least_ms=min((each["took_ms"] for each in leasts), default=float("inf")),
            token_ms=min((each["token_ms"] for each in leasts), default=float("inf")),
        )

    @property
    def answers(self) -> int:
        return sum(self.counts)

    @property
    def lacking(self) -> int:
        """How many more answers a first choice needs."""
        return max(1, ENOUGH_ANSWERS - self.answers)

    def margin(self, at: int, window: Window) -> Margin:
        """The margin of the window at this place; the fixed one before any was measured."""
        measured = self.margins[at] if at < len(self.margins) else None
        if measured is None:
            return Margin(window.fixed_margin_ms, window.fixed_margin_ms)
        return measured.within(window.largest_margin_ms)

    def chosen(self, windows: Sequence[Window], now_ms: int) -> tuple[Margin, ...]:
        """The margins that hold from now on; the existing ones when nothing changes."""
        if self.answers < ENOUGH_ANSWERS and not any(self.margins):
            return ()
        settled = tuple(self.margin(at, w).settled(now_ms) for at, w in enumerate(windows))
        if self.answers < ENOUGH_ANSWERS or now_ms - self.chosen_at < CHOSEN_FOR_MS:
            return settled
        return tuple(
            margin.towards(best_margin_ms(self.counts, self.token_ms, window), window, now_ms)
            for margin, window in zip(settled, windows, strict=True)
        )


def stored_margins(connector: Mapping[str, Any]) -> list[Document | None]:
    """The margins in a connector's document, by window; None where none was measured."""
    states = (connector.get("limiter") or {}).get("windows") or ()
    return [state.get("margin") for state in states]


def best_margin_ms(counts: Sequence[int], token_ms: float, window: Window) -> int:
    """The m that minimises `m / period + the share of requests later than m`.

    The token's own round trip comes on top, because it is taken off when requests are judged.
    """
    total = later = sum(counts)
    costs = {0: 1.0}
    for count, edge in zip(counts, EDGES_MS, strict=False):
        later -= count
        if edge + token_ms <= window.largest_margin_ms:
            costs[edge] = edge / window.period_ms + later / total
    best = min(costs, key=lambda edge: costs[edge])
    return min(max(SMALLEST_MARGIN_MS, math.ceil(best + token_ms)), window.largest_margin_ms)


def report_pipeline(report: Report) -> list[Document]:
    """Adds a process's answers to the connector's figures, and rotates generations that are due."""
    pairs = {"$zip": {"inputs": ["$lateness.histogram.now.counts", report.counts]}}
    counts = {"$map": {"input": pairs, "in": {"$sum": "$$this"}}}
    took_ms = {"$min": ["$lateness.least.now.took_ms", report.least_ms]}
    token_ms = {"$min": ["$lateness.least.now.token_ms", report.token_ms]}
    nothing = {"counts": [0] * len(report.counts)}
    return [
        {
            "$set": {
                "lateness.histogram": _turned("histogram", nothing),
                "lateness.least": _turned("least", {}),
            }
        },
        {
            "$set": {
                "lateness.histogram.now.counts": counts,
                "lateness.least.now": {"took_ms": took_ms, "token_ms": token_ms},
            }
        },
    ]


def _turned(name: str, fresh: Document) -> Document:
    """Two generations of a figure, rotated when the younger one is old enough."""
    age = {"$subtract": [NOW_MS, {"$ifNull": [f"$lateness.{name}.since", 0]}]}
    counted = {"$gte": [{"$sum": f"$lateness.{name}.now.counts"}, HISTOGRAM_ANSWERS]}
    over = {"$or": [{"$gt": [age, LEAST_MS]}, {"$and": [{"$gt": [age, HISTOGRAM_MS]}, counted]}]}
    turned = {
        "since": NOW_MS,
        "now": {"$literal": fresh},
        "before": {"$ifNull": [f"$lateness.{name}.now", None]},
    }
    return {"$cond": [over, turned, f"$lateness.{name}"]}


def _enough(generations: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The younger generation when it has enough answers, else both."""
    if generations and sum(generations[0]) >= ENOUGH_ANSWERS:
        return tuple(generations[0])
    return tuple(map(sum, zip(*generations, strict=True)))


def _generations(stored: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    return [each for each in ((stored or {}).get(name) for name in ("now", "before")) if each]
