"""A calendar of weekly sessions in a time zone, with holidays and overrides. All of it is data.

Times are wall-clock times of the zone, so sessions move in UTC when the zone changes its clocks.
Holidays come back every year; overrides are single stretches, applied last and in order, which open
or close the market: closed days, early closes, extra openings.

A *trading day* starts at `day_starts`, minutes from local midnight, and bears the date of that
midnight: with -420 Monday lasts from Sunday 17:00 to Monday 17:00.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from collector.durations import DAY_MS
from collector.market.calendar.slots import Slots
from collector.market.interval import Interval, covers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Times = NDArray[np.int64]

_DAY = 24 * 60
_WEEK = 7 * _DAY
_FIRST_MONDAY = datetime(1969, 12, 1)
_YEARS = range(1970, 2101)
"""Where calendars end. Nothing is open before or after."""
_WEEKS = 52 * len(_YEARS) + 170
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class Session:
    """Open once a week, from `opens` to `closes`: `Session("sun 17:00", "fri 16:55")`."""

    opens: str
    closes: str

    def minutes(self) -> tuple[int, int]:
        """From Monday 00:00; the end lies behind the start."""
        start, end = (_minute_of_week(each) for each in (self.opens, self.closes))
        return start, end if end > start else end + _WEEK


@dataclass(frozen=True, slots=True)
class Holiday:
    """Closed every year, from `closes` to `opens`: `Holiday("12-31 17:00", "01-01 17:00")`."""

    closes: str
    opens: str

    def in_year(self, year: int) -> tuple[datetime, datetime]:
        """The one that begins in this year."""
        start = datetime.fromisoformat(f"{year}-{self.closes}")
        end = datetime.fromisoformat(f"{year}-{self.opens}")
        if end <= start:
            end = datetime.fromisoformat(f"{year + 1}-{self.opens}")
        return start, end


@dataclass(frozen=True, slots=True)
class Override:
    """Open or closed for once: `Override("2026-12-24 13:00", "2026-12-24 17:00")`."""

    start: str
    end: str
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Sessions:
    """Weekly sessions with holidays and overrides. ValueError for texts that cannot be read."""

    name: str
    zone: str
    week: tuple[Session, ...]
    day_starts: int = 0
    holidays: tuple[Holiday, ...] = ()
    overrides: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        for holiday in self.holidays:
            holiday.in_year(2000)
        for each in self.overrides:
            if datetime.fromisoformat(each.start) >= datetime.fromisoformat(each.end):
                raise ValueError(f"an override from {each.start} to {each.end} holds no time")
        for session in self.week:
            session.minutes()
        ZoneInfo(self.zone)

    @property
    def identity(self) -> str:
        return _identity(self)

    def with_overrides(self, overrides: Iterable[Override]) -> Sessions:
        """The same calendar with further overrides behind its own."""
        return replace(self, overrides=(*self.overrides, *overrides))

    def is_open(self, ts_ms: int) -> bool:
        return bool(_hours(self).is_open(ts_ms))

    def next_open(self, ts_ms: int) -> int | None:
        hours = _hours(self)
        return ts_ms if hours.is_open(ts_ms) else _first_behind(hours.opens, ts_ms)

    def next_close(self, ts_ms: int) -> int | None:
        hours = _hours(self)
        return _first_behind(hours.closes, ts_ms) if hours.is_open(ts_ms) else ts_ms

    def closed(self, span: Interval) -> tuple[Interval, ...]:
        hours = _hours(self)
        first = int(np.searchsorted(hours.closes, span.from_ms, side="right"))
        last = int(np.searchsorted(hours.opens, span.to_ms, side="left"))
        found, at = [], span.from_ms
        for start, end in zip(
            hours.opens[first:last].tolist(), hours.closes[first:last].tolist(), strict=True
        ):
            if at < start:
                found.append(Interval(at, start))
            at = end
        return (*found, Interval(at, span.to_ms)) if at < span.to_ms else tuple(found)

    def slots(self, length_ms: int, months: int, origin_ms: int) -> Slots | None:
        return _slots(self, length_ms, months, origin_ms)


@dataclass(frozen=True, slots=True, eq=False)
class _Hours:
    """The open stretches of all years, ascending, and the start of every trading day."""

    opens: Times
    closes: Times
    days: Times
    labels: Times
    """The date of each trading day, in days since 1970."""

    def is_open(self, ts_ms: int) -> bool:
        at = int(np.searchsorted(self.opens, ts_ms, side="right")) - 1
        return at >= 0 and ts_ms < int(self.closes[at])


@cache
def _hours(calendar: Sessions) -> _Hours:
    zone = ZoneInfo(calendar.zone)
    weekly = [_weekly(zone, session) for session in calendar.week]
    off = [
        (_utc(zone, start), _utc(zone, end))
        for holiday in calendar.holidays
        for start, end in (holiday.in_year(year) for year in _YEARS)
    ]
    special = [
        (_moment(zone, e.start), _moment(zone, e.end), e.is_open) for e in calendar.overrides
    ]
    bounds = [time for stretch in weekly for time in stretch]
    points = np.unique(
        np.concatenate([*bounds, np.array([ms for each in (*off, *special) for ms in each[:2]])])
    ).astype(np.int64)
    is_open = np.zeros(len(points), dtype=np.bool_)
    for opens, closes in weekly:
        is_open |= covers(tuple(map(Interval, opens.tolist(), closes.tolist())), points)
    is_open &= ~covers(tuple(Interval(*each) for each in sorted(off)), points)
    for start, end, state in special:
        is_open[(points >= start) & (points < end)] = state
    # A stretch begins where the state turns, and the last point is behind everything.
    is_open[-1] = False
    turns = np.flatnonzero(np.diff(is_open, prepend=False))
    numbers = np.arange(-31, 365 * len(_YEARS) + 60)
    first = datetime(1970, 1, 1) + timedelta(minutes=calendar.day_starts)
    days = _utc_of_all(zone, [first + timedelta(days=number) for number in numbers.tolist()])
    return _Hours(points[turns[::2]], points[turns[1::2]], days, numbers)


@cache
def _slots(calendar: Sessions, length_ms: int, months: int, origin_ms: int) -> Slots:
    hours = _hours(calendar)
    blocks = hours.days
    if months or length_ms > DAY_MS:
        if length_ms % DAY_MS:
            raise ValueError("bars longer than a day are whole days in a calendar of sessions")
        if months:
            dates = hours.labels.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
            groups = dates // months
        else:
            groups = (hours.labels - origin_ms // DAY_MS) // (length_ms // DAY_MS)
        # The first group may have begun before the calendar does.
        blocks = blocks[1:][groups[1:] != groups[:-1]]
    step = length_ms if length_ms <= DAY_MS else None
    return Slots.of(hours.opens, hours.closes, blocks, step, calendar.identity)


@cache
def _identity(calendar: Sessions) -> str:
    content = repr(replace(calendar, name="")).encode()
    return f"{calendar.name}:{hashlib.sha256(content).hexdigest()[:12]}"


def _weekly(zone: ZoneInfo, session: Session) -> tuple[Times, Times]:
    start, end = session.minutes()
    mondays = [_FIRST_MONDAY + timedelta(weeks=week) for week in range(_WEEKS)]
    opens = _utc_of_all(zone, [monday + timedelta(minutes=start) for monday in mondays])
    closes = _utc_of_all(zone, [monday + timedelta(minutes=end) for monday in mondays])
    return opens, closes


def _utc_of_all(zone: ZoneInfo, moments: Iterable[datetime]) -> Times:
    return np.array([_utc(zone, moment) for moment in moments], dtype=np.int64)


def _utc(zone: ZoneInfo, local: datetime) -> int:
    offset = local.replace(tzinfo=zone).utcoffset() or timedelta()
    return round((local.replace(tzinfo=UTC) - offset).timestamp() * 1000)


def _moment(zone: ZoneInfo, text: str) -> int:
    return _utc(zone, datetime.fromisoformat(text))


def _minute_of_week(text: str) -> int:
    day, _, clock = text.partition(" ")
    if day not in _DAYS:
        raise ValueError(f"{text!r} does not name a day and a time such as 'sun 17:00'")
    at = datetime.strptime(clock, "%H:%M")
    return _DAYS.index(day) * _DAY + at.hour * 60 + at.minute


def _first_behind(times: Times, ts_ms: int) -> int | None:
    at = int(np.searchsorted(times, ts_ms, side="right"))
    return int(times[at]) if at < len(times) else None
