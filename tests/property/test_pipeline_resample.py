"""Resampling any pattern of gaps against a loop that anyone can check."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.market.candles import MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.calendar import calendar
from collector.pipeline.ladder import Graded, Ladder

M1, M5, M15 = (Timeframe.parse(name) for name in ("1m", "5m", "15m"))
START = 1_704_067_200_000

price = st.integers(1, 50).map(float)


@st.composite
def minutes(draw: st.DrawFn) -> CandleBatch:
    """A grid that starts anywhere, with bars, no-trade and missing minutes in any order."""
    offset = draw(st.integers(0, 20))
    kinds = draw(st.lists(st.sampled_from("bbbnm"), min_size=1, max_size=70))
    rows, covered = [], []
    for at, kind in enumerate(["b", *kinds]):
        ts = START + (offset + at) * M1.ms
        if kind == "b":
            a, b, c, d = sorted(draw(st.tuples(price, price, price, price)))
            turnover = draw(st.sampled_from([math.nan, 2.0, 3.0]))
            rows.append((ts, b, d, a, c, float(at), turnover))
        if kind != "m":
            covered.append(Interval(ts, ts + M1.ms))
    first = START + offset * M1.ms
    whole = Interval(first, first + (len(kinds) + 1) * M1.ms)
    return calendar(CandleBatch.of(rows), M1, whole, covered)


Bar = tuple[float, ...]


def slow(grid: CandleBatch, target: Timeframe) -> list[Bar]:
    count = target.ms // M1.ms
    lines = list(zip(*(column.tolist() for column in (grid.ts, *grid.values())), strict=True))
    made: list[Bar] = []
    for at, line in enumerate(lines):
        window = lines[at : at + count]
        if line[0] % target.ms or len(window) < count:
            continue
        real = [row for row in window if row[7] == 0]
        reason = MISSING if any(row[7] == MISSING for row in window) else NO_TRADE
        gap = 0 if len(real) == count else PARTIAL if real else reason
        lending = real or window
        turnover = sum(row[6] for row in lending)
        made.append(
            (
                line[0],
                lending[0][1],
                max(row[2] for row in lending),
                min(row[3] for row in lending),
                lending[-1][4],
                sum(row[5] for row in window),
                -1.0 if math.isnan(turnover) else turnover,
                gap,
            )
        )
    return made


def told_by(batch: CandleBatch) -> list[Bar]:
    turnover = [-1.0 if math.isnan(t) else t for t in batch.t.tolist()]
    columns = (batch.o, batch.h, batch.l, batch.c, batch.v)
    lists = [batch.ts.tolist(), *(c.tolist() for c in columns), turnover, batch.gap.tolist()]
    return list(zip(*lists, strict=True))


@given(minutes())
def test_any_pattern_of_gaps_is_resampled_as_the_loop_does(grid: CandleBatch) -> None:
    made = Ladder(M1, [M5, M15]).climb(graded(grid))
    assert told_by(made[M5].batch) == slow(grid, M5)
    assert told_by(made[M15].batch) == slow(grid, M15)


@given(minutes(), st.lists(st.integers(0, 70), max_size=6))
def test_pieces_make_the_same_bars_as_the_whole(grid: CandleBatch, cuts: list[int]) -> None:
    ladder = Ladder(M1, [M5, M15])
    edges = [0, *sorted(min(cut, len(grid)) for cut in cuts), len(grid)]
    pieces = [
        ladder.climb(graded(grid.take(slice(a, b)))) for a, b in itertools.pairwise(edges) if a < b
    ]
    for target in (M5, M15):
        made = [bar for piece in pieces for bar in told_by(piece[target].batch)]
        assert made == slow(grid, target)


def graded(grid: CandleBatch) -> Graded:
    return Graded(grid, np.ones(len(grid), dtype=np.int32))
