"""PublishDataGate: nothing is published twice, nothing out of order, nothing left out.

Each channel of a stream (for bars: each series) has a mark: up to which moment everything was
published, and the fence of its publisher. The rule here decides what of an offer is new and where
the mark moves. In production the mark lives in Redis and the same rule runs there as a script
(gate_script.py), together with PUBLISH, so that no crash, retry or slow twin can come between the
two. A property test compares class and script.

Times are epoch milliseconds. A stretch is `[start, until)`.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Mark:
    """Everything before `until` was published, the last of it by the owner of `fence`."""

    fence: int
    until: int


@dataclass(frozen=True, slots=True)
class GateOffer:
    """Items of the stretch `[start, until)`, complete, with their times in ascending order.

    `proven` is the moment before which everything is known to be published, from a source other
    than the mark: it counts when the mark is missing or behind.
    """

    fence: int
    proven: int
    start: int
    until: int
    times: tuple[int, ...]

    def __post_init__(self) -> None:
        inside = all(self.start <= each < self.until for each in self.times)
        if not inside or list(self.times) != sorted(self.times):
            raise ValueError("times have to ascend and lie in the stretch of the offer")


class GateVerdict(StrEnum):
    ADMITTED = "admitted"
    """What is new was published, which may be nothing, and the mark is at the offer's end."""
    STALE_FENCE = "stale_fence"
    """A later owner has published: the offer counts for nothing."""
    GAP = "gap"
    """Something between the mark and the offer's start was never published: begin at the mark."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """`new` items, the last ones of the offer, were admitted; `mark` is where it stands now."""

    verdict: GateVerdict
    new: int
    mark: Mark


def rule(mark: Mark | None, offer: GateOffer) -> Ruling:
    """What becomes of an offer. The mark is only to be written when it was admitted."""
    if mark is not None and offer.fence < mark.fence:
        return Ruling(GateVerdict.STALE_FENCE, 0, mark)
    base = offer.proven if mark is None else max(mark.until, offer.proven)
    if offer.start > base:
        return Ruling(GateVerdict.GAP, 0, Mark(offer.fence, base))
    new = len(offer.times) - bisect_left(offer.times, base)
    return Ruling(GateVerdict.ADMITTED, new, Mark(offer.fence, max(base, offer.until)))


class PublishDataGate:
    """The rule with its marks in memory, by key."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    def mark(self, key: str) -> Mark | None:
        return self._marks.get(key)

    def admit(self, key: str, offer: GateOffer) -> Ruling:
        """Decides, and moves the mark when something was admitted."""
        ruling = rule(self._marks.get(key), offer)
        if ruling.verdict is GateVerdict.ADMITTED:
            self._marks[key] = ruling.mark
        return ruling

    def forget(self, key: str) -> None:
        """The mark is lost, as when Redis has restarted empty."""
        self._marks.pop(key, None)
