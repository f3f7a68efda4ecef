"""The gate's rule in memory, in plain Python: what the script on Redis is compared with."""

from __future__ import annotations

from bisect import bisect_left

from collector.publication.gate import GateOffer, GateVerdict, Mark, Ruling


def _rule(mark: Mark | None, offer: GateOffer) -> Ruling:
    """What becomes of an offer. The mark is only to be written when it was admitted."""
    if mark is not None and offer.fence < mark.fence:
        return Ruling(GateVerdict.STALE_FENCE, 0, mark)
    base = offer.proven if mark is None else max(mark.until, offer.proven)
    if offer.start > base:
        return Ruling(GateVerdict.GAP, 0, Mark(offer.fence, base))
    new = len(offer.times) - bisect_left(offer.times, base)
    return Ruling(GateVerdict.ADMITTED, new, Mark(offer.fence, max(base, offer.until)))


class GateModel:
    """The rule with its marks by key."""

    def __init__(self) -> None:
        self._marks: dict[str, Mark] = {}

    def mark(self, key: str) -> Mark | None:
        return self._marks.get(key)

    def admit(self, key: str, offer: GateOffer) -> Ruling:
        """Decides, and moves the mark when something was admitted."""
        ruling = _rule(self._marks.get(key), offer)
        if ruling.verdict is GateVerdict.ADMITTED:
            self._marks[key] = ruling.mark
        return ruling

    def forget(self, key: str) -> None:
        """The mark is lost, as when Redis has restarted empty."""
        self._marks.pop(key, None)
