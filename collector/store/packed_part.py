"""The footer of a group part, packed, because thousands of them are kept in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collector.store.coverage import Covered
from collector.store.part import PageEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.store.part import Part

_NONE = -(2**63)
_LINE = np.dtype(
    [
        ("series", "u4"),
        ("at", "u4"),
        ("rows", "u4"),
        ("covered", "u4"),
        ("first_ts", "i8"),
        ("last_ts", "i8"),
        ("known_at", "i8"),
        ("fence", "i8"),
    ]
)
"""One page; `covered` is where its part of the ledger ends."""


@dataclass(frozen=True, slots=True, eq=False)
class PackedPart:
    """What a part's footer records; series are numbers here."""

    path: str
    hull: Interval
    rows: int
    made_at: int
    replaces: frozenset[str]
    """Names of the parts whose rows are all in this one, or sealed."""
    lines: NDArray[np.void]
    """A page each, as _LINE."""
    covered: NDArray[np.int64]
    """The ledgers of all pages, one after another: from, to, bars."""

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def touches(self, from_ms: int, to_ms: int) -> bool:
        """Whether any of its pages may be about `[from_ms, to_ms)`."""
        return self.hull.from_ms < to_ms and from_ms < self.hull.to_ms

    def line_series(self) -> list[int]:
        """The series of each line."""
        numbers: list[int] = self.lines["series"].tolist()
        return numbers

    def series(self) -> set[int]:
        return set(self.line_series())

    def covered_series(self) -> NDArray[np.uint32]:
        """The series of each row of `covered`."""
        series: NDArray[np.uint32] = self.lines["series"]
        return np.repeat(series, np.diff(self.lines["covered"], prepend=0))

    def lines_of(self, series: int) -> list[int]:
        found: list[int] = np.flatnonzero(self.lines["series"] == series).tolist()
        return found

    def pages(self, lines: Iterable[int]) -> tuple[PageEntry, ...]:
        return tuple(map(self._page, lines))

    def _page(self, line: int) -> PageEntry:
        _, at, rows, end, first, last, known_at, fence = self.lines[line].item()
        start = int(self.lines[line - 1]["covered"]) if line else 0
        return PageEntry(
            at,
            rows,
            None if first == _NONE else first,
            None if last == _NONE else last,
            known_at,
            fence,
            tuple(Covered(*each) for each in self.covered[start:end].tolist()),
        )


def pack(part: Part, hull: Interval, number_of: Callable[[tuple[str, str]], int]) -> PackedPart:
    """`number_of` returns the number of a series by its symbol and timeframe."""
    lines: list[tuple[int, ...]] = []
    covered: list[list[int]] = []
    for timeframe, symbols in part.page_lines.items():
        for symbol, pages in symbols.items():
            series = number_of((symbol, timeframe))
            # Directly from the footer: making thousands of records first takes twice as long.
            for at, rows, first, last, known_at, fence, ledger in pages:
                covered += ledger
                ends = (_NONE, _NONE) if first is None else (first, last)
                lines.append((series, at, rows, len(covered), *ends, known_at, fence))
    return PackedPart(
        part.path,
        hull,
        part.rows,
        part.made_at,
        part.replaces,
        np.array(lines, dtype=_LINE),
        np.array(covered, dtype=np.int64).reshape(-1, 3),
    )
