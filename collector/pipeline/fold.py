"""The last version of a bar wins, and earlier versions are kept.

A *sighting* is one bar as an answer contained it, and the time it was known. The history of a bar
is a set of sightings put in order; neighbours with equal values are one *version*, of which the
first and the last sighting are kept. The last version is the bar, and its number is `ver`.

The order is `known_at`, and for two sightings of one millisecond the bars themselves: more volume
wins, then the greater turnover, close, high, low, open, then the exchange's further columns.
Nothing outside a sighting decides, so the outcome depends neither on which files the sightings come
from, nor on how often they are read, nor on when files were merged: folding twice, or folding what
was folded, changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.market.candles import CandleBatch
from collector.market.labels import Labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Sightings:
    """Bars in any order, possibly with repeated times. Each was valid from `known_at` to `seen_at`
    at least.

    `source` is where each bar came from.
    """

    batch: CandleBatch
    known_at: Ints
    seen_at: Ints
    source: Labels

    def __len__(self) -> int:
        return len(self.batch)

    @classmethod
    def of(cls, batch: CandleBatch, known_at: int, source: str) -> Sightings:
        """A page's bars, all known at one moment."""
        known = np.full(len(batch), known_at, dtype=np.int64)
        return cls(batch, known, known, Labels.repeated([source], [len(batch)]))

    @classmethod
    def concat(cls, parts: Sequence[Sightings]) -> Sightings:
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.of(CandleBatch.empty(), 0, "")
        return cls(
            CandleBatch.concat([part.batch for part in parts]),
            np.concatenate([part.known_at for part in parts]),
            np.concatenate([part.seen_at for part in parts]),
            Labels.concat([part.source for part in parts]),
        )

    def take(self, rows: NDArray[Any] | slice) -> Sightings:
        return Sightings(
            self.batch.take(rows), self.known_at[rows], self.seen_at[rows], self.source.take(rows)
        )


@dataclass(frozen=True, slots=True, eq=False)
class Versions:
    """Sightings that are versions, with their numbers."""

    rows: Sightings
    ver: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class BarVersions:
    """The bars of a range, one a time and ascending, and every version they replaced."""

    current: Versions
    older: Versions


def fold(sightings: Sightings, as_of: int | None = None) -> BarVersions:
    """The history that the sightings give; with `as_of`, as it was at the end of that moment."""
    if as_of is None and (seen_once := _seen_once(sightings)) is not None:
        return seen_once
    rows, at = _moments(sightings, as_of)
    order = _order(sightings.batch, rows, at)
    rows, at = rows[order], at[order]
    batch = sightings.batch.take(rows)
    if not len(batch):
        nothing = Versions(sightings.take(rows), np.zeros(0, dtype=np.int32))
        return BarVersions(nothing, nothing)
    new_bar = np.append(True, batch.ts[1:] != batch.ts[:-1])
    starts = np.flatnonzero(new_bar | _changed(batch))
    ends = np.append(starts[1:], len(batch)) - 1
    # A version's number: its place among the versions of its bar.
    first_of_bar = np.maximum.accumulate(np.where(new_bar[starts], np.arange(len(starts)), 0))
    ver = (np.arange(len(starts)) - first_of_bar + 1).astype(np.int32)
    source = sightings.source.take(rows[starts])
    versions = Sightings(batch.take(starts), at[starts], at[ends], source)
    last = np.append(new_bar[starts][1:], True)
    return BarVersions(
        current=Versions(versions.take(last), ver[last]),
        older=Versions(versions.take(~last), ver[~last]),
    )


def _seen_once(sightings: Sightings) -> BarVersions | None:
    """The history when every bar has one sighting, as in nearly every backfill; else None."""
    ts, seen_at = sightings.batch.ts, sightings.seen_at
    if (seen_at > sightings.known_at).any():
        return None
    rows = sightings
    if not (ts[1:] > ts[:-1]).all():
        order = np.argsort(ts, kind="stable")
        if (np.diff(ts[order]) == 0).any():
            return None
        rows = sightings.take(order)
    none = Versions(sightings.take(slice(0, 0)), np.zeros(0, dtype=np.int32))
    return BarVersions(Versions(rows, np.ones(len(rows), dtype=np.int32)), none)


def _moments(sightings: Sightings, as_of: int | None) -> tuple[Ints, Ints]:
    """Each row at both ends of the time it was seen: its place in the batch, and the moment."""
    rows = np.arange(len(sightings), dtype=np.int64)
    again = np.flatnonzero(sightings.seen_at > sightings.known_at)
    rows = np.concatenate((rows, again))
    at = np.concatenate((sightings.known_at, sightings.seen_at[again]))
    if as_of is None:
        return rows, at
    known = at <= as_of
    return rows[known], at[known]


def _order(batch: CandleBatch, rows: Ints, at: Ints) -> NDArray[np.intp]:
    ts = batch.ts[rows]
    order = np.lexsort((at, ts))
    tied = (ts[order][1:] == ts[order][:-1]) & (at[order][1:] == at[order][:-1])
    if not tied.any():
        return order
    # An unknown turnover sorts below every known one.
    turnover = np.where(np.isnan(batch.t), -1.0, batch.t)
    ties: tuple[NDArray[Any], ...] = (
        batch.gap,
        batch.o,
        batch.l,
        batch.h,
        batch.c,
        turnover,
        batch.v,
    )
    if batch.extra:
        known = (batch.extra[name] for name in sorted(batch.extra))
        ties = (*(np.where(np.isnan(each), -np.inf, each) for each in known), *ties)
    return np.lexsort((*(column[rows] for column in ties), at, ts))


def _changed(batch: CandleBatch) -> NDArray[np.bool_]:
    """Which rows differ in value from the row before them."""
    changed = np.zeros(len(batch), dtype=np.bool_)
    may_be_unknown = (batch.t, *batch.extra.values())
    for column in (*batch.values(), *batch.extra.values()):
        now, then = column[1:], column[:-1]
        differs = now != then
        if any(column is each for each in may_be_unknown):
            differs &= ~(np.isnan(now) & np.isnan(then))
        changed[1:] |= differs
    return changed
