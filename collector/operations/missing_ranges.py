"""The missing ranges of stored series, the longest first, each with the job that owns it."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from collector.jobs.owners import by_owner, owners
from collector.reports.coverage_days import calendar_of, holes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.jobs.owners import OwnerJob
    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.reports.expected import Expected
    from collector.reports.ledgers import SeriesLedger


@dataclass(frozen=True, slots=True)
class MissingRange:
    """Slots of a series that no answer covers, and who fetches them."""

    series: Series
    span: Interval
    owner: OwnerJob | None = None

    @property
    def bars(self) -> int:
        return self.series.timeframe.count(self.span.from_ms, self.span.to_ms)


@dataclass(frozen=True, slots=True)
class MissingRanges:
    """The longest, and how many ranges and bars are missing in all."""

    longest: Sequence[MissingRange]
    ranges: int
    bars: int


def longest_ranges(
    found: Sequence[SeriesLedger], expected: Mapping[Series, Expected], most: int
) -> MissingRanges:
    """Without owners yet. Pure."""
    missing: list[MissingRange] = []
    for ledger in found:
        frame = ledger.series.timeframe
        calendar = calendar_of(frame, ledger.covered, expected[ledger.series])
        if calendar is not None and not ledger.is_damaged:
            ranges = holes(frame, ledger.covered, calendar)
            missing += [MissingRange(ledger.series, each) for each in ranges]
    longest = heapq.nsmallest(most, missing, key=lambda each: each.span.from_ms - each.span.to_ms)
    return MissingRanges(longest, len(missing), sum(each.bars for each in missing))


async def with_owners(database: Database, missing: Sequence[MissingRange]) -> list[MissingRange]:
    """The same, cut where the owner changes."""
    by_exchange = sorted(missing, key=lambda each: each.series.exchange_id)
    candidates: dict[tuple[str, str, str], list[OwnerJob]] = {}
    for exchange_id, its in groupby(by_exchange, lambda each: each.series.exchange_id):
        found = await owners(database, exchange_id, [each.series.symbol for each in its])
        candidates |= {(exchange_id, *name): jobs for name, jobs in found.items()}
    pieces = []
    for each in missing:
        series = each.series
        name = series.exchange_id, series.symbol, series.timeframe.name
        pieces += [
            MissingRange(series, span, owner)
            for span, owner in by_owner(each.span, candidates.get(name, ()))
        ]
    return pieces
