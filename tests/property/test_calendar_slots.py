"""The bars of calendars with sessions, against a model that looks at every minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.market.calendar.fx import FX
from collector.market.calendar.sessions import Override, Session, Sessions
from collector.market.timeframe import Timeframe
from tests.support.examples import examples

MINUTE_MS = 60_000
DAY_MS = 86_400_000

# Two sessions a day with a break inside an hour, through the night of both clock changes.
BERLIN = Sessions(
    name="berlin",
    zone="Europe/Berlin",
    week=tuple(
        Session(f"{day} {opens}", f"{day} {closes}")
        for day in ("mon", "wed", "sat", "sun")
        for opens, closes in (("00:30", "11:20"), ("11:40", "22:10"))
    ),
    overrides=(Override("2026-03-30 02:00", "2026-03-30 05:00"),),
)
CALENDARS = {"fx": FX, "berlin": BERLIN}
CHANGES = [
    datetime(2026, 3, 6, tzinfo=UTC),
    datetime(2026, 3, 27, tzinfo=UTC),
    datetime(2026, 10, 23, tzinfo=UTC),
    datetime(2026, 10, 30, tzinfo=UTC),
    datetime(2026, 12, 22, tzinfo=UTC),
]


def window_start(calendar: Sessions, name: str, ts_ms: int) -> int:
    """Found by walking back, minute by minute, to the start of the local trading day."""
    zone = ZoneInfo(calendar.zone)
    shift = timedelta(minutes=calendar.day_starts)
    local = datetime.fromtimestamp(ts_ms / 1000, zone).replace(tzinfo=None)
    date = (local - shift).date()
    start = datetime(date.year, date.month, date.day) + shift
    offset = start.replace(tzinfo=zone).utcoffset() or timedelta()
    start_ms = round((start.replace(tzinfo=UTC) - offset).timestamp() * 1000)
    length = Timeframe.parse(name).ms
    return start_ms + (ts_ms - start_ms) // length * length


def expected(calendar: Sessions, name: str, from_ms: int, to_ms: int) -> list[int]:
    """Windows that hold an open minute, from the minutes around the span."""
    around = range(from_ms - 2 * DAY_MS, to_ms + 2 * DAY_MS, MINUTE_MS)
    found = {window_start(calendar, name, ts) for ts in around if calendar.is_open(ts)}
    return sorted(ts for ts in found if from_ms <= ts < to_ms)


spans = st.tuples(
    st.sampled_from(CHANGES), st.integers(0, 3 * 24 * 60), st.integers(1, 2 * 24 * 60)
).map(
    lambda each: (
        round(each[0].timestamp() * 1000) + each[1] * MINUTE_MS,
        round(each[0].timestamp() * 1000) + (each[1] + each[2]) * MINUTE_MS,
    )
)


@settings(max_examples=examples(40), deadline=None)
@given(
    which=st.sampled_from(sorted(CALENDARS)),
    name=st.sampled_from(["1m", "5m", "7m", "15m", "1h", "4h", "1d"]),
    span=spans,
)
def test_bars_are_the_windows_that_hold_an_open_minute(
    which: str, name: str, span: tuple[int, int]
) -> None:
    calendar = CALENDARS[which]
    frame = Timeframe.parse(name).by(calendar)
    wanted = expected(calendar, name, *span)
    assert frame.opens(*span).tolist() == wanted
    for ts in wanted[:3]:
        assert frame.floor(ts) == ts
        assert frame.count(wanted[0], ts) == wanted.index(ts)


@settings(max_examples=examples(100), deadline=None)
@given(
    which=st.sampled_from(sorted(CALENDARS)),
    name=st.sampled_from(["1m", "7m", "1h", "4h", "1d", "1w", "1M"]),
    ts=st.integers(1_700_000_000_000, 1_800_000_000_000),
    bars=st.integers(1, 500),
)
def test_stepping_and_counting_agree_and_windows_leave_nothing_out(
    which: str, name: str, ts: int, bars: int
) -> None:
    frame = Timeframe.parse(name).by(CALENDARS[which])
    later = frame.shift(ts, bars)
    assert len(frame.opens(ts + 1, later + 1)) == bars
    assert frame.shift(frame.shift(later, -bars), bars) == later
    assert frame.floor(ts) <= ts < frame.end(ts)
    assert frame.floor(frame.end(ts)) == frame.end(ts)
    assert frame.next_close(ts) > ts
    times = frame.opens(ts, later + 1)
    assert not frame.skips(times).any()
    if len(times) > 2:
        assert frame.skips(np.delete(times, 1))[0]
