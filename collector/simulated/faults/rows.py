"""Faults of single rows in a page of bars. Each spoils the rows it picks, and only those."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from collector.simulated.bars import FRAMES
from collector.simulated.faults.record import Count, Pick, RequestFault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.simulated.encode import Row
    from collector.simulated.faults.record import Strike
    from collector.simulated.request import PublicRequest

_HIGH, _LOW, _CLOSE_TIME = 2, 3, 6
_NONSENSE: tuple[Any, ...] = (None, "NaN", "abc", [], {}, True, "")


@dataclass(frozen=True, kw_only=True)
class RowFault(RequestFault, Pick, ABC):
    """Spoils rows of an answer. With `once`, each row only in its first answer."""

    once: bool = False

    def change(self, rows: list[Row], turn: Strike) -> list[Row]:
        """The page with its picked rows spoilt."""
        ask = turn.ask
        # By its slot: another fault may have moved its time.
        frame = FRAMES[ask.interval or "1m"]
        opens = np.array([frame.floor(row[0]) for row in rows], dtype=np.int64)
        picked = np.flatnonzero(self.mask(opens, turn.seed, self.kind, ask.symbol)).tolist()
        if self.once:
            picked = [
                place
                for place in picked
                if turn.first_time((ask.symbol, ask.interval, int(opens[place])))
            ]
        return self.spoil(rows, picked, ask)

    @abstractmethod
    def spoil(self, rows: list[Row], picked: Sequence[int], ask: PublicRequest) -> list[Row]: ...


@dataclass(frozen=True, kw_only=True)
class Dropped(RowFault):
    """The row is missing in its first answer and present in the next."""

    kind: Literal["dropped"] = "dropped"
    once: bool = True

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        gone = set(picked)
        return [row for place, row in enumerate(rows) if place not in gone]


@dataclass(frozen=True, kw_only=True)
class Duplicates(RowFault):
    """The row comes twice."""

    kind: Literal["duplicates"] = "duplicates"

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        twice = set(picked)
        return [row for place, row in enumerate(rows) for _ in range(1 + (place in twice))]


@dataclass(frozen=True, kw_only=True)
class Disorder(RowFault):
    """The picked rows stand in reverse order among themselves."""

    kind: Literal["disorder"] = "disorder"

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        shuffled = list(rows)
        for place, other in zip(picked, reversed(picked), strict=True):
            shuffled[place] = rows[other]
        return shuffled


@dataclass(frozen=True, kw_only=True)
class BadOhlc(RowFault):
    """High and low have changed places."""

    kind: Literal["bad_ohlc"] = "bad_ohlc"

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        return _changed(rows, picked, lambda row: {_HIGH: row[_LOW], _LOW: row[_HIGH]})


@dataclass(frozen=True, kw_only=True)
class Unaligned(RowFault):
    """The bar opens `shift_ms` after the start of its interval."""

    kind: Literal["unaligned"] = "unaligned"
    shift_ms: Count = 1

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        shift = self.shift_ms
        return _changed(
            rows, picked, lambda row: {0: row[0] + shift, _CLOSE_TIME: row[_CLOSE_TIME] + shift}
        )


@dataclass(frozen=True, kw_only=True)
class WrongTypes(RowFault):
    """Prices and volume are null, text, a list and the like, in turn over the picked rows.

    With `nan` also the bare word NaN, which is not JSON: a strict parser refuses the whole page.
    """

    kind: Literal["wrong_types"] = "wrong_types"
    nan: bool = False

    def spoil(self, rows: list[Row], picked: Sequence[int], _ask: PublicRequest) -> list[Row]:
        nonsense = (*_NONSENSE, float("nan")) if self.nan else _NONSENSE
        spoilt = list(rows)
        for turn, place in enumerate(picked):
            row = list(rows[place])
            row[1 + turn % 5] = nonsense[turn % len(nonsense)]
            spoilt[place] = row
        return spoilt


@dataclass(frozen=True, kw_only=True)
class Future(RowFault):
    """The page ends with `bars` copies of its last row that open after the running bar."""

    kind: Literal["future"] = "future"
    bars: Count = 1

    def spoil(self, rows: list[Row], picked: Sequence[int], ask: PublicRequest) -> list[Row]:
        if not picked:
            return rows
        frame = FRAMES[ask.interval or "1m"]
        running = frame.floor(ask.now_ms)
        opens = [frame.shift(running, ahead) for ahead in range(1, self.bars + 1)]
        return rows + [
            [
                open_ms,
                *rows[-1][1:_CLOSE_TIME],
                frame.next_open(open_ms) - 1,
                *rows[-1][_CLOSE_TIME + 1 :],
            ]
            for open_ms in opens
        ]


def _changed(rows: list[Row], picked: Sequence[int], change: Any) -> list[Row]:
    spoilt = list(rows)
    for place in picked:
        row = list(rows[place])
        for column, value in change(row).items():
            row[column] = value
        spoilt[place] = row
    return spoilt
