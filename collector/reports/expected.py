"""From where to where bars of a series are expected, whatever is stored of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.durations import DAY_MS
from collector.market.interval import Interval, union

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.market.timeframe import Timeframe
    from collector.pipeline.evidence import Silence

LATE_MS = 300_000
"""A bar that closed less than this long ago may still arrive; after that it is missing."""

UNNOTICED_MS = DAY_MS
"""A market may be gone for this long before it is noticed: bars of that time may not exist."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The time range in which a series should have every bar."""

    from_ms: int | None
    """Its requested beginning; None when only its files show it."""
    to_ms: int | None
    """The moment up to which bars have closed; None when it ends with its files."""
    is_listed: bool = True
    """Whether its market is still there."""
    unconfirmed: tuple[Silence, ...] = ()
    """Open silences: what is missing inside them counts as unconfirmed, and not as missing."""

    @classmethod
    def by_now(cls, now_ms: int, from_ms: int | None = None) -> Expected:
        """For a market that trades: up to the last bar that closed a while ago."""
        return cls(from_ms, now_ms - LATE_MS)

    def start(self, timeframe: Timeframe, stored_ms: int | None) -> int | None:
        """Where the calendar begins: here, or where the files begin when that is earlier."""
        known = [ms for ms in (self.from_ms, stored_ms) if ms is not None]
        if not known:
            return None
        return timeframe.ceil(min(known))

    def end(self, timeframe: Timeframe, stored_ms: int) -> int:
        """Where the calendar ends: here, or where the files end when that is later."""
        if self.to_ms is None:
            return stored_ms
        if not self.is_listed and self.to_ms - stored_ms <= UNNOTICED_MS:
            return stored_ms
        return max(stored_ms, timeframe.floor(self.to_ms))

    def unconfirmed_slots(self, timeframe: Timeframe) -> tuple[Interval, ...]:
        """The slots that the open silences hold from end to end, as ascending intervals."""
        return whole_slots(union(each.interval for each in self.unconfirmed), timeframe)

    def asked_again_ms(self, span: Interval) -> int | None:
        """When a job first asks about unconfirmed slots of a range again; None if none will."""
        dues = (each.due_ms for each in self.unconfirmed if each.interval.overlaps(span))
        return min((due_ms for due_ms in dues if due_ms), default=None)


def whole_slots(intervals: Iterable[Interval], timeframe: Timeframe) -> tuple[Interval, ...]:
    """The slots that lie inside each interval from end to end."""
    edges = ((timeframe.ceil(each.from_ms), timeframe.floor(each.to_ms)) for each in intervals)
    return tuple(Interval(start, end) for start, end in edges if start < end)
