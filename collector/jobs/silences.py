"""Ranges that a venue reported as empty, and when that is accepted. Pure.

One empty answer proves nothing: venues answer empty when they are busy. A range is accepted as
empty when a later run receives the same answer; a long range of a market that trades needs a
further one days later. Until then the slots are missing, and the job keeps this record in its
progress.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.durations import DAY_MS
from collector.market.interval import Interval, clipped, subtract, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SAME_AGAIN_MS = 600_000
"""A gap job requests an empty range again after this time."""
LONG_AGAIN_MS = 3 * DAY_MS
"""A long range is requested once more after this time."""
LIVE_AGAIN_MS = 60_000
"""An incremental job asks at every bar; an empty answer at least this old confirms a new one."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A range reported as empty, and the time of the first such report."""

    stretch: Interval
    first_ms: int


def from_progress(progress: Any) -> tuple[Silence, ...]:
    """Reads what `to_progress` wrote."""
    return tuple(Silence(Interval(a, b), first) for a, b, first in progress or ())


def to_progress(silences: Iterable[Silence]) -> list[list[int]]:
    """As stored in a job's progress."""
    return [[each.stretch.from_ms, each.stretch.to_ms, each.first_ms] for each in silences]


def merged(
    earlier: Sequence[Silence], quiet: Sequence[Interval], now_ms: int
) -> tuple[Silence, ...]:
    """The ranges that are empty now, each part with the time of its first empty answer."""
    known = [
        Silence(part, each.first_ms)
        for each in earlier
        for whole in quiet
        for part in clipped([each.stretch], whole)
    ]
    new = subtract(quiet, [each.stretch for each in known])
    return (*known, *(Silence(stretch, now_ms) for stretch in new))


def believed(silences: Iterable[Silence], now_ms: int, after_ms: int) -> tuple[Interval, ...]:
    """Ranges whose first empty answer is at least `after_ms` old."""
    return union(each.stretch for each in silences if now_ms - each.first_ms >= after_ms)


def asked_again_in_ms(silences: Iterable[Silence], now_ms: int) -> int:
    """When the job requests them again: soon for new ones, else after days."""
    ages = [now_ms - each.first_ms for each in silences]
    waits = [SAME_AGAIN_MS if age < SAME_AGAIN_MS else LONG_AGAIN_MS - age for age in ages]
    return max(SAME_AGAIN_MS, min(waits, default=LONG_AGAIN_MS))
