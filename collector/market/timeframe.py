"""How long a bar is, and when bars open.

Most bars are a fixed number of milliseconds long, counted from an *origin*. Months are calendar
months, from the first of one to the first of the next, in UTC: 28 to 31 days. Where a market closes
(`calendar/`), closed time holds no bars, and days are the market's own. Code that counts or steps
through bars uses the timeframe's `shift`, `count` and `opens` instead of multiplying `ms`.

`floor`, `ceil` and `end` are about windows of time, of which every moment has one; `opens`,
`count`, `shift` and `next_open` are about bars that are expected, and closed time has none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, WEEK_MS
from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.lookup import calendar_of
from collector.market.week import week_origin_ms

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.market.calendar.calendar import Calendar
    from collector.market.calendar.slots import Slots

    Times = NDArray[np.int64]

_SHORTEST_MONTH_MS = 28 * DAY_MS
_UNIT_MS = {"s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": WEEK_MS}
_FORM = re.compile(r"([1-9][0-9]{0,3})([smhdwM])")
_FILE_FORM = re.compile(r"([1-9][0-9]{0,3})([smhdw]|mo)")


@dataclass(frozen=True, slots=True, order=True)
class Timeframe:
    """A bar length such as 1m, 4h or 1M. Ordered by length; bars are aligned to UTC.

    `ms` is the length. Of months it is the least: a stretch of so many times `ms` never holds more
    bars than that.
    """

    ms: int
    name: str
    months: int = field(default=0, compare=False)
    """How many calendar months a bar is; 0 for a bar of fixed length."""
    origin: int = field(default=0, compare=False)
    """When some bar opens; the others open whole lengths from it. Not for months."""
    slots: Slots | None = field(default=None, compare=False, repr=False)
    """Which bars there are in a market that closes; None where it never does."""

    @classmethod
    def parse(cls, name: str) -> Timeframe:
        """Accepts `1m`, and FXCM's spelling `m1`/`H1`. Raises ValueError for anything else.

        Case matters: `1m` is a minute and `1M` a month.
        """
        text = name
        if re.fullmatch(r"[mHD][1-9][0-9]*", name):
            text = name[1:] + name[0].lower()
        match = _FORM.fullmatch(text)
        if match is None:
            raise ValueError(f"{name!r} is not a timeframe such as 1m, 15m, 1h, 1d or 1M")
        count, unit = int(match[1]), match[2]
        if unit == "M":
            return cls(count * _SHORTEST_MONTH_MS, text, months=count)
        ms = count * _UNIT_MS[unit]
        return cls(ms, text, origin=week_origin_ms() if ms % WEEK_MS == 0 else 0)

    @classmethod
    def of_file_name(cls, name: str) -> Timeframe:
        """The timeframe that a file's name means. Raises ValueError when it means none."""
        match = _FILE_FORM.fullmatch(name)
        if match is None:
            raise ValueError(f"{name!r} is not the name of a timeframe's file")
        return cls.parse(f"{match[1]}M" if match[2] == "mo" else name)

    @property
    def file_name(self) -> str:
        """As files are called: `1M` is written `1mo`, for where 1m and 1M are the same name."""
        return f"{self.name[:-1]}mo" if self.months else self.name

    def at(self, exchange_id: str, symbol: str = "") -> Timeframe:
        """The same bars as a market has them: by the day its weeks open, and when it is open."""
        calendar = calendar_of(exchange_id, symbol)
        if calendar is ALWAYS_OPEN and (self.months or self.ms % WEEK_MS):
            return self
        if self.months or self.ms % WEEK_MS:
            return self.by(calendar)
        return replace(self, origin=week_origin_ms(exchange_id)).by(calendar)

    def by(self, calendar: Calendar) -> Timeframe:
        """The same bars by a calendar."""
        slots = calendar.slots(self.ms, self.months, self.origin)
        return self if slots is self.slots else replace(self, slots=slots)

    @property
    def is_uniform(self) -> bool:
        """Whether bars follow one another in equal steps."""
        return not self.months and self.slots is None

    @property
    def calendar_id(self) -> str:
        """Identity of the calendar; empty for a market that never closes."""
        return "" if self.slots is None else self.slots.identity

    def floor(self, ts_ms: int) -> int:
        """The opening time of the bar that holds `ts_ms`."""
        if self.slots is None and not self.months:
            return ts_ms - (ts_ms - self.origin) % self.ms
        return int(self.floors(_one(ts_ms))[0])

    def end(self, ts_ms: int) -> int:
        """When the bar that holds `ts_ms` closes."""
        if self.slots is None:
            return self.shift(ts_ms, 1)
        return int(self.ends(_one(self.floor(ts_ms)))[0])

    def next_open(self, ts_ms: int) -> int:
        """The first opening time of a bar after `ts_ms`."""
        return self.shift(ts_ms, 1)

    def next_close(self, ts_ms: int) -> int:
        """The first moment after `ts_ms` at which a bar closes."""
        if self.slots is None:
            return self.shift(ts_ms, 1)
        start = self.floor(ts_ms)
        return self.end(self.shift(start - 1, 1))

    def behind_closed(self, ts_ms: int) -> int:
        """`ts_ms`, or the next opening time where it lies in closed time."""
        if self.slots is None:
            return ts_ms
        floor = _one(self.floor(ts_ms))
        return ts_ms if self._is_slot(floor)[0] else self.next_open(ts_ms)

    def ceil(self, ts_ms: int) -> int:
        """The first opening time at or after `ts_ms`."""
        floor = self.floor(ts_ms)
        return ts_ms if floor == ts_ms else self.end(floor)

    def aligned(self, ts_ms: int) -> bool:
        return self.floor(ts_ms) == ts_ms

    def shift(self, ts_ms: int, bars: int) -> int:
        """The opening time of the bar that is `bars` behind the one that holds `ts_ms`.

        From closed time the next bar is one behind, and the last one before it one ahead.
        """
        if self.slots is not None:
            return self._shift_slots(self.slots, ts_ms, bars)
        if self.months:
            return self._opening(self._place(ts_ms) + bars)
        return self.floor(ts_ms) + bars * self.ms

    def count(self, from_ms: int, to_ms: int) -> int:
        """How many whole bars lie between two opening times; negative when they are swapped."""
        if self.slots is None and not self.months:
            return (to_ms - from_ms) // self.ms
        return int(self.counts(_one(from_ms), _one(to_ms))[0])

    def counts(self, from_ms: Times, to_ms: Times) -> Times:
        """`count` of each pair of opening times."""
        if self.slots is not None:
            before = self.slots.counts_before
            return before(self.floors(to_ms)) - before(self.floors(from_ms))
        if self.months:
            return self._places(to_ms) - self._places(from_ms)
        counts: Times = (to_ms - from_ms) // self.ms
        return counts

    def opens(self, from_ms: int, to_ms: int) -> Times:
        """The opening time of every bar in `[from_ms, to_ms)`; `from_ms` is one, unless closed."""
        if self.slots is not None:
            return self.slots.between(from_ms, to_ms)
        if self.months:
            places = np.arange(self._place(from_ms), self._place(to_ms - 1) + 1)
            return self._openings(places)
        return np.arange(from_ms, to_ms, self.ms, dtype=np.int64)

    def skips(self, ts: Times) -> NDArray[np.bool_]:
        """Of every time but the first of ascending ones, whether a bar before it is left out."""
        if self.slots is None:
            left_out: NDArray[np.bool_] = ts[1:] != self.ends(ts[:-1])
        else:
            left_out = np.diff(self.slots.counts_before(ts)) > self._is_slot(ts[:-1])
        return left_out

    def are_in_line(self, ts: Times) -> bool:
        """Whether these are the opening times of bars that follow one another without a gap.

        Two steps over the times instead of one for each thing that follows from it: they are on the
        grid, ascending, different, and one run. False where bars differ in length.
        """
        if not self.is_uniform or not len(ts) or not self.aligned(int(ts[0])):
            return False
        return bool((ts[1:] - ts[:-1] == self.ms).all())

    def floors(self, ts: Times) -> Times:
        """`floor` of each time."""
        if self.slots is not None:
            return self.slots.floors(ts)
        if self.months:
            return self._openings(self._places(ts))
        floors: Times = ts - (ts - self.origin) % self.ms
        return floors

    def ends(self, opens: Times) -> Times:
        """When each of the bars that open at these times closes."""
        if self.slots is not None:
            return self.slots.ends(opens)
        if self.months:
            return self._openings(self._places(opens) + 1)
        ends: Times = opens + self.ms
        return ends

    def _shift_slots(self, slots: Slots, ts_ms: int, bars: int) -> int:
        floor = self.floor(ts_ms)
        if not bars:
            return floor
        # Ahead of a window, or behind it: the same number when a bar opens there.
        first = int(slots.counts_before(_one(floor + 1 if bars > 0 else floor))[0])
        found = int(slots.at(_one(first - 1 + bars if bars > 0 else first + bars))[0])
        # There is nothing to find outside the years of the calendar.
        return found if (found > floor) == (bars > 0) else floor + bars * self.ms

    def _is_slot(self, ts: Times) -> NDArray[np.bool_]:
        assert self.slots is not None
        before = self.slots.counts_before
        is_slot: NDArray[np.bool_] = before(ts + 1) > before(ts)
        return is_slot

    def _place(self, ts_ms: int) -> int:
        return int(self._places(_one(ts_ms))[0])

    def _opening(self, place: int) -> int:
        return int(self._openings(_one(place))[0])

    def _places(self, ts: Times) -> Times:
        """For months: the number of the bar since January 1970 that holds each time."""
        months: NDArray[Any] = ts.astype("datetime64[ms]").astype("datetime64[M]")
        places: Times = months.astype(np.int64) // self.months
        return places

    def _openings(self, places: Times) -> Times:
        months: NDArray[Any] = (places * self.months).astype("datetime64[M]")
        return months.astype("datetime64[ms]").astype(np.int64)

    def __str__(self) -> str:
        return self.name


def _one(ts_ms: int) -> Times:
    return np.array([ts_ms], dtype=np.int64)


MINUTE = Timeframe.parse("1m")
"""The timeframe that longer bars are made of."""
