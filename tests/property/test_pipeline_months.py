"""Months of any pattern of gaps against a loop that anyone can check."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.market.candles import MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.calendar import calendar
from collector.pipeline.ladder import Graded, Ladder
from collector.pipeline.resample import divides, resample

D1, M1, MO, QUARTER = (Timeframe.parse(name) for name in ("1d", "1m", "1M", "3M"))
START = 1_704_067_200_000  # 2024-01-01, a leap year

price = st.integers(1, 50).map(float)
Bar = tuple[float, ...]


@st.composite
def days(draw: st.DrawFn) -> CandleBatch:
    """A grid that starts on any day, with bars, no-trade and missing days in any order."""
    offset = draw(st.integers(0, 70))
    kinds = draw(st.lists(st.sampled_from("bbbbnm"), min_size=1, max_size=130))
    rows, covered = [], []
    for at, kind in enumerate(["b", *kinds]):
        ts = START + (offset + at) * D1.ms
        if kind == "b":
            a, b, c, d = sorted(draw(st.tuples(price, price, price, price)))
            rows.append((ts, b, d, a, c, float(at), draw(st.sampled_from([math.nan, 2.0]))))
        if kind != "m":
            covered.append(Interval(ts, ts + D1.ms))
    first = START + offset * D1.ms
    return calendar(
        CandleBatch.of(rows), D1, Interval(first, first + (len(kinds) + 1) * D1.ms), covered
    )


def slow(grid: CandleBatch, months: int) -> list[Bar]:
    def month_of(ts: float) -> int:
        day = datetime.fromtimestamp(ts / 1000, UTC)
        return (day.year * 12 + day.month - 1) // months

    lines = list(zip(*(column.tolist() for column in (grid.ts, *grid.values())), strict=True))
    made: list[Bar] = []
    for _, group in itertools.groupby(lines, lambda line: month_of(line[0])):
        window = list(group)
        first, last = window[0][0], window[-1][0]
        if month_of(first - 1) == month_of(first) or month_of(last + D1.ms) == month_of(last):
            continue
        real = [row for row in window if row[7] == 0]
        reason = MISSING if any(row[7] == MISSING for row in window) else NO_TRADE
        lending = real or window
        turnover = sum(row[6] for row in lending)
        made.append(
            (
                first,
                lending[0][1],
                max(row[2] for row in lending),
                min(row[3] for row in lending),
                lending[-1][4],
                sum(row[5] for row in window),
                -1.0 if math.isnan(turnover) else turnover,
                0 if len(real) == len(window) else reason | (PARTIAL if real else 0),
            )
        )
    return made


def told_by(batch: CandleBatch) -> list[Bar]:
    turnover = [-1.0 if math.isnan(t) else t for t in batch.t.tolist()]
    columns = (batch.o, batch.h, batch.l, batch.c, batch.v)
    lists = [batch.ts.tolist(), *(c.tolist() for c in columns), turnover, batch.gap.tolist()]
    return list(zip(*lists, strict=True))


@given(days())
def test_any_pattern_of_gaps_makes_the_months_that_the_loop_makes(grid: CandleBatch) -> None:
    ver = np.arange(len(grid), dtype=np.int32)
    made = Ladder(D1, [MO, QUARTER]).climb(Graded(grid, ver))
    assert told_by(made[MO].batch) == slow(grid, 1)
    assert told_by(made[QUARTER].batch) == slow(grid, 3)
    ends = MO.ends(made[MO].batch.ts)
    assert made[MO].ver.tolist() == (np.searchsorted(grid.ts, ends) - 1).tolist()


@given(days(), st.lists(st.integers(0, 130), max_size=6))
def test_pieces_make_the_same_months_as_the_whole(grid: CandleBatch, cuts: list[int]) -> None:
    ladder = Ladder(D1, [MO])
    edges = [0, *sorted(min(cut, len(grid)) for cut in cuts), len(grid)]
    pieces = [
        Graded(grid.take(slice(a, b)), np.ones(b - a, dtype=np.int32))
        for a, b in itertools.pairwise(edges)
        if a < b
    ]
    made = [bar for piece in pieces for bar in told_by(ladder.climb(piece)[MO].batch)]
    assert made == slow(grid, 1)


@pytest.mark.parametrize(
    ("source", "target", "possible"),
    [
        ("1m", "1M", True),
        ("1d", "1M", True),
        ("1M", "3M", True),
        ("3M", "1M", False),
        ("1w", "1M", False),
        ("7h", "1M", False),
        ("2d", "1M", False),
        ("1M", "1w", False),
        ("1M", "4w", False),
    ],
)
def test_which_bars_make_months(source: str, target: str, possible: bool) -> None:
    assert divides(Timeframe.parse(source), Timeframe.parse(target)) is possible


def test_a_month_of_minutes() -> None:
    span = Interval(START, START + 31 * 86_400_000)
    grid = calendar(CandleBatch.of([(START, 1, 2, 1, 2, 3.0, 4.0)]), M1, span, [span])
    (made,) = told_by(resample(grid, M1, MO))
    assert made == (START, 1, 2, 1, 2, 3.0, 4.0, NO_TRADE | PARTIAL)


def test_a_grid_with_a_hole_is_refused() -> None:
    rows = [(START + n * D1.ms, 1, 1, 1, 1, 1, 1) for n in range(40) if n != 7]
    with pytest.raises(ValueError, match="uniform grid"):
        resample(CandleBatch.of(rows), D1, MO)
