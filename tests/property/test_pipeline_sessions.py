"""Bars of a market that closes, filled and resampled, against loops that anyone can check."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.market.calendar.fx import FX
from collector.market.candles import BAR, MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.calendar import calendar
from collector.pipeline.ladder import Graded, Ladder
from collector.pipeline.layers import Layer, overlay
from collector.pipeline.resample import resample

M1, M5, H1, D1 = (Timeframe.parse(name).by(FX) for name in ("1m", "5m", "1h", "1d"))


def new_york(text: str) -> int:
    zone = ZoneInfo("America/New_York")
    return round(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


FRIDAYS = [new_york(f"{day} 15:00") for day in ("2026-03-06", "2026-06-05", "2026-10-30")]


@st.composite
def weekends(draw: st.DrawFn) -> CandleBatch:
    """Minutes around a week end, some of them without a bar, and perhaps one in closed time."""
    friday = draw(st.sampled_from(FRIDAYS))
    first = friday + draw(st.integers(0, 70)) * M1.ms
    end = M1.shift(first, draw(st.integers(60, 300)))
    slots = M1.opens(first, end).tolist()
    kinds = [draw(st.sampled_from("bbbbbnm")) for _ in slots[:40]]
    rows, covered = [], []
    for at, ts in enumerate(slots):
        kind = kinds[at % len(kinds)] if at else "b"
        if kind == "b":
            rows.append((ts, 2.0 + at % 7, 9.0 + at % 3, 1.0, 3.0 + at % 5, float(at), at * 2.0))
        if kind != "m":
            covered.append(Interval(ts, ts + M1.ms))
    saturday = M1.floor(friday + 86_400_000)
    if draw(st.booleans()) and end > saturday:
        rows.append((saturday, 5.0, 50.0, 4.0, 5.0, 1.0, 2.0))
        rows.sort()
    return calendar(CandleBatch.of(rows), M1, Interval(first, end), covered)


def slow(grid: CandleBatch, target: Timeframe) -> list[tuple[float, ...]]:
    lines = list(zip(*(column.tolist() for column in (grid.ts, *grid.values())), strict=True))
    windows: dict[int, list[tuple[float, ...]]] = {}
    for line in lines:
        windows.setdefault(target.floor(line[0]), []).append(line)
    made = []
    for start, window in windows.items():
        expected = set(M1.opens(start, target.end(start)).tolist())
        if not expected <= {line[0] for line in window}:
            continue
        real = [line for line in window if line[7] not in (NO_TRADE, MISSING)]
        lend = real or window
        gap = BAR
        if any(line[7] != BAR for line in window):
            owed = any(line[7] == MISSING for line in window)
            gap = PARTIAL if real else MISSING if owed else NO_TRADE
        high, low = max(line[2] for line in lend), min(line[3] for line in lend)
        volume, turnover = sum(line[5] for line in window), sum(line[6] for line in lend)
        made.append((start, lend[0][1], high, low, lend[-1][4], volume, turnover, gap))
    return made


def lines_of(batch: CandleBatch) -> list[tuple[float, ...]]:
    return list(zip(*(column.tolist() for column in (batch.ts, *batch.values())), strict=True))


@settings(max_examples=60, deadline=None)
@given(grid=weekends(), target=st.sampled_from([M5, H1, D1]))
def test_longer_bars_over_a_week_end_are_what_a_loop_makes(
    grid: CandleBatch, target: Timeframe
) -> None:
    assert lines_of(resample(grid, M1, target)) == slow(grid, target)


@settings(max_examples=40, deadline=None)
@given(grid=weekends(), cut=st.integers(1, 200))
def test_pieces_make_the_same_bars_as_the_whole(grid: CandleBatch, cut: int) -> None:
    ladder = Ladder(M1, [M5, H1])
    made: list[CandleBatch] = []
    for start in range(0, len(grid), cut):
        piece = grid.take(slice(start, start + cut))
        graded = Graded(piece, np.ones(len(piece), dtype=np.int32))
        made.append(ladder.climb(graded)[H1].batch)
    assert lines_of(CandleBatch.concat(made)) == slow(grid, H1)


def test_the_last_hour_of_a_week_is_whole_with_its_fifty_five_minutes() -> None:
    first, end = new_york("2026-03-06 16:00"), new_york("2026-03-06 16:55")
    minutes = CandleBatch.of([(ts, 1.0, 2.0, 0.5, 1.5, 1.0) for ts in range(first, end, M1.ms)])
    hours = resample(minutes, M1, H1)
    assert hours.ts.tolist() == [first]
    assert hours.v.tolist() == [55.0]
    assert hours.gap.tolist() == [BAR]


def test_a_grid_with_a_hole_in_open_time_is_refused() -> None:
    times = M1.opens(new_york("2026-03-06 16:50"), new_york("2026-03-08 17:05")).tolist()
    whole = CandleBatch.of([(ts, 1.0, 2.0, 0.5, 1.5, 1.0) for ts in times])
    assert len(resample(whole, M1, M5)) == 2
    with pytest.raises(ValueError, match="fill the calendar"):
        resample(whole.take(np.delete(np.arange(len(times)), 3)), M1, M5)


def test_layers_meet_in_the_slots_of_the_calendar_and_keep_a_bar_of_closed_time() -> None:
    first, end = new_york("2026-03-06 16:50"), new_york("2026-03-08 17:05")
    saturday = new_york("2026-03-07 12:00")
    times = M1.opens(first, end).tolist()

    def layer(name: str, kept: list[int]) -> Layer:
        rows = CandleBatch.of([(ts, 1.0, 2.0, 0.5, 1.5, 1.0) for ts in kept])
        whole = calendar(rows, M1, Interval(first, end), ())
        return Layer.by(name, whole, np.ones(len(whole), dtype=np.int32))

    upper, lower = layer("upper", [*times[:2], saturday, times[-1]]), layer("lower", times)
    laid = overlay(upper, lower, M1)
    assert laid.batch.ts.tolist() == sorted([*times, saturday])
    assert not laid.batch.gap.any()
    from_upper = laid.batch.ts[[each == "upper" for each in laid.source]].tolist()
    assert from_upper == [*times[:2], saturday, times[-1]]
