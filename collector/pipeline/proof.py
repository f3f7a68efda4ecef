"""Which of the requested slots answers cover. Pure, and the only place that decides it.

An answer covers:

- from its first row to its last;
- before its first row only when the venue is known to begin at the requested time, or when a row
  is at that time or before it;
- after its last row only when it was not full, and when an empty range is likely there: with rows
  as dense as those that came, only a few would be expected. A second answer confirms such a range,
  unless it is long.

An empty answer covers nothing. The other requested slots are either *quiet* (an answer that was not
full has no row there) or *open* (no answer is about them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.interval import Interval, subtract, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.market.timeframe import Timeframe

UNLIKELY_ROWS = 10
"""An empty range in which more rows than this would be expected is unlikely."""
LONG_SLOTS = 240
"""An empty range of this many slots in a market that trades is never accepted within one run."""


@dataclass(frozen=True, slots=True)
class AnswerExtent:
    """One answer about bars: what was requested, and what came.

    asked     the requested slots first_ms  when the first row that was sent opens, inside `asked`
    or not; None when none came last_ms   when the last row opens, of those that were kept if any
    were rows      how many of them open inside `asked` full      whether rows may have been left
    out begins    whether the venue is known to begin its answers at the requested time newest_ms
    when the last row that was sent opens, kept or not
    """

    asked: Interval
    first_ms: int | None
    last_ms: int | None
    rows: int
    full: bool
    begins: bool
    newest_ms: int | None = None


def density(answers: Sequence[AnswerExtent], timeframe: Timeframe) -> float:
    """Rows per slot, by the first answer with rows."""
    for extent in answers:
        if extent.rows:
            return extent.rows / max(1, timeframe.count(extent.asked.from_ms, extent.asked.to_ms))
    return 0.0


def is_long(slots: int, rows_a_slot: float) -> bool:
    """Whether an empty range is requested again days later before it is accepted."""
    return slots >= LONG_SLOTS and slots * rows_a_slot > UNLIKELY_ROWS


def proven(
    answers: Sequence[AnswerExtent], timeframe: Timeframe, ended_ms: int
) -> tuple[Interval, ...]:
    """What the answers, in the order they came, cover together. `ended_ms`: no bar ended later."""
    usual = density(answers, timeframe)
    found: list[Interval] = []
    spoke = False
    for extent in answers:
        stretch = _proven_by(extent, timeframe, ended_ms, usual, again=spoke)
        found += [] if stretch is None else [stretch]
        spoke = spoke or extent.first_ms is not None
    return union(found)


def _proven_by(
    extent: AnswerExtent, timeframe: Timeframe, ended_ms: int, usual: float, *, again: bool
) -> Interval | None:
    if extent.first_ms is None or extent.last_ms is None:
        return None
    begins = extent.begins or extent.first_ms <= extent.asked.from_ms
    if extent.first_ms >= extent.asked.to_ms and not begins:
        return None
    start = extent.asked.from_ms if begins else extent.first_ms
    end = timeframe.end(extent.last_ms)
    silence = timeframe.count(max(end, start), min(extent.asked.to_ms, ended_ms))
    likely = silence * usual <= UNLIKELY_ROWS or (again and not is_long(silence, usual))
    if not extent.full and likely:
        end = max(end, extent.asked.to_ms)
    return Interval(start, end) if start < end else None


def left(
    asked: Interval, answers: Sequence[AnswerExtent], done: Iterable[Interval]
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """What is not `done` of the requested slots: the quiet ranges, and the open ones."""
    rest = subtract([asked], done)
    unspoken = subtract(rest, [extent.asked for extent in answers if not extent.full])
    return subtract(rest, unspoken), unspoken
