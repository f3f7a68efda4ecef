"""The interface of a calendar, and the calendar of a market that never closes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collector.market.calendar.slots import Slots
    from collector.market.interval import Interval


class Calendar(Protocol):
    """When a market is open. Moments are epoch ms, in UTC."""

    @property
    def identity(self) -> str:
        """Name and version: equal for calendars with the same hours. Empty for always open."""

    def is_open(self, ts_ms: int) -> bool: ...

    def next_open(self, ts_ms: int) -> int | None:
        """The first open moment at or after this one; None when there is none."""

    def next_close(self, ts_ms: int) -> int | None:
        """The first closed moment at or after this one; None when there is none."""

    def closed(self, span: Interval) -> tuple[Interval, ...]:
        """The closed stretches of `span`, ascending."""

    def slots(self, length_ms: int, months: int, origin_ms: int) -> Slots | None:
        """The bars of a timeframe; None where they follow one another without a pause."""


class AlwaysOpen:
    """A market that never closes, as those of crypto."""

    identity = ""

    def is_open(self, ts_ms: int) -> bool:
        return True

    def next_open(self, ts_ms: int) -> int | None:
        return ts_ms

    def next_close(self, ts_ms: int) -> int | None:
        return None

    def closed(self, span: Interval) -> tuple[Interval, ...]:
        return ()

    def slots(self, length_ms: int, months: int, origin_ms: int) -> Slots | None:
        return None


ALWAYS_OPEN = AlwaysOpen()
