"""Folding against the slow, obvious way: sort every sighting of a bar, count what changed."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.market.candles import CandleBatch
from collector.market.labels import Labels
from collector.pipeline.fold import BarVersions, Sightings, Versions, fold

Sighting = tuple[int, int, float, float]  # slot, known_at, value, turnover

turnovers = st.sampled_from([math.nan, 1.0])
sightings = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 6), st.sampled_from([1.0, 2.0, 3.0]), turnovers),
    max_size=14,
)


def as_rows(told: list[Sighting]) -> Sightings:
    batch = CandleBatch.of([(slot, v, v, v, v, v, t) for slot, _, v, t in told])
    known = np.array([known for _, known, _, _ in told], dtype=np.int64)
    return Sightings(batch, known, known, Labels.repeated(["x"], [len(told)]))


def slow(told: list[Sighting]) -> dict[int, list[tuple[float, float, int, int]]]:
    """By slot its versions: value, turnover (-1 when unknown), first and last moment."""
    bars: dict[int, list[tuple[float, float, int, int]]] = defaultdict(list)
    key = [(slot, known, v, -1.0 if math.isnan(t) else t) for slot, known, v, t in told]
    for slot, known, value, turnover in sorted(key):
        versions = bars[slot]
        if versions and versions[-1][:2] == (value, turnover):
            versions[-1] = (*versions[-1][:3], known)
        else:
            versions.append((value, turnover, known, known))
    return dict(bars)


def told_by(versions: Versions) -> list[tuple[int, int, float, float, int, int]]:
    rows = versions.rows
    turnover = np.where(np.isnan(rows.batch.t), -1.0, rows.batch.t)
    columns = (rows.batch.ts, versions.ver, rows.batch.c, turnover, rows.known_at, rows.seen_at)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def check(history: BarVersions, told: list[Sighting]) -> None:
    expected = slow(told)
    current = [(slot, len(all_), *all_[-1]) for slot, all_ in sorted(expected.items())]
    older = [
        (slot, number + 1, *version)
        for slot, all_ in sorted(expected.items())
        for number, version in enumerate(all_[:-1])
    ]
    assert told_by(history.current) == current
    assert told_by(history.older) == older


@given(sightings)
def test_the_last_sighting_wins_and_changes_are_counted(told: list[Sighting]) -> None:
    check(fold(as_rows(told)), told)


@given(sightings, st.integers(0, 6))
def test_as_of_folds_what_was_known_by_then(told: list[Sighting], moment: int) -> None:
    check(fold(as_rows(told), as_of=moment), [each for each in told if each[1] <= moment])


@given(sightings)
def test_folding_what_was_folded_changes_nothing(told: list[Sighting]) -> None:
    once = fold(as_rows(told))
    again = fold(Sightings.concat([once.older.rows, once.current.rows, as_rows(told)]))
    assert told_by(again.current) == told_by(once.current)
    assert told_by(again.older) == told_by(once.older)


@given(sightings, st.data())
def test_the_order_of_merging_does_not_change_the_bars(
    told: list[Sighting], data: st.DataObject
) -> None:
    """Folding piece by piece, in any order, ends with the same bars as folding everything."""
    shuffled = data.draw(st.permutations(told))
    cut = data.draw(st.integers(0, len(told)))
    first = fold(as_rows(list(shuffled[:cut])))
    pieces = [first.older.rows, first.current.rows, as_rows(list(shuffled[cut:]))]
    bars = [row[0:1] + row[2:4] for row in told_by(fold(Sightings.concat(pieces)).current)]
    assert bars == [row[0:1] + row[2:4] for row in told_by(fold(as_rows(told)).current)]
