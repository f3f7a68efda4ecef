"""The gate's rule: nothing twice, nothing out of order, nothing left out, no stale owner."""

from __future__ import annotations

import pytest

from collector.publication.gate import GateOffer, GateVerdict, Mark
from tests.support.gate_model import GateModel

KEY = "fxcm:published:ohlcv:XAU/USD:1m"


def offer(start: int, until: int, *, fence: int = 1, proven: int | None = None) -> GateOffer:
    """A bar every ten milliseconds."""
    known = start if proven is None else proven
    return GateOffer(fence, known, start, until, tuple(range(start, until, 10)))


def test_the_same_bars_are_admitted_once() -> None:
    gate = GateModel()
    assert gate.admit(KEY, offer(0, 30)).new == 3
    assert gate.admit(KEY, offer(0, 30)).new == 0
    assert gate.mark(KEY) == Mark(1, 30)


def test_of_bars_that_overlap_only_the_newer_ones_are_admitted() -> None:
    gate = GateModel()
    gate.admit(KEY, offer(0, 30))
    assert gate.admit(KEY, offer(10, 50)).new == 2


def test_older_bars_never_follow_newer_ones() -> None:
    gate = GateModel()
    gate.admit(KEY, offer(100, 130))
    late = gate.admit(KEY, offer(0, 30))
    assert (late.verdict, late.new, late.mark.until) == (GateVerdict.ADMITTED, 0, 130)


def test_bars_that_leave_some_out_are_refused_until_those_are_published() -> None:
    gate = GateModel()
    gate.admit(KEY, offer(0, 30))
    early = gate.admit(KEY, offer(50, 70, proven=0))
    assert (early.verdict, early.mark.until) == (GateVerdict.GAP, 30)
    assert gate.mark(KEY) == Mark(1, 30)
    assert gate.admit(KEY, offer(30, 50, proven=0)).new == 2
    assert gate.admit(KEY, offer(50, 70, proven=0)).new == 2


def test_an_owner_that_was_replaced_publishes_nothing() -> None:
    gate = GateModel()
    gate.admit(KEY, offer(0, 30, fence=2))
    slow = gate.admit(KEY, offer(30, 60, fence=1, proven=0))
    assert (slow.verdict, slow.new) == (GateVerdict.STALE_FENCE, 0)
    assert gate.mark(KEY) == Mark(2, 30)


def test_a_mark_that_is_lost_begins_at_what_is_known_to_be_published() -> None:
    gate = GateModel()
    gate.admit(KEY, offer(0, 30))
    gate.forget(KEY)
    assert gate.admit(KEY, offer(0, 50, proven=30)).new == 2


def test_a_stretch_without_bars_moves_the_mark() -> None:
    gate = GateModel()
    assert gate.admit(KEY, GateOffer(1, 0, 0, 30, ())).mark == Mark(1, 30)


def test_times_that_do_not_ascend_are_no_offer() -> None:
    with pytest.raises(ValueError, match="ascend"):
        GateOffer(1, 0, 0, 30, (20, 10))
