"""The missing and unconfirmed ranges of stored series, the longest first, each with the job that
owns it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
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
    is_unconfirmed: bool = False
    """Whether the exchange reported them as empty, and is asked again."""
    asked_again_ms: int | None = None
    """When unconfirmed slots are asked about again; None while their job is paused."""

    @property
    def bars(self) -> int:
        return self.series.timeframe.count(self.span.from_ms, self.span.to_ms)


@dataclass(frozen=True, slots=True)
class MissingRanges:
    """The longest, and how many ranges and bars are missing or unconfirmed in all."""

    longest: Sequence[MissingRange]
    ranges: int
    bars: int
    """Those that are missing."""
    unconfirmed: int
    """Bars that are unconfirmed."""


def longest_ranges(
    found: Sequence[SeriesLedger], expected: Mapping[Series, Expected], most: int
) -> MissingRanges:
    """Without owners yet. Pure."""
    ranges: list[MissingRange] = []
    for ledger in found:
        series, frame, wanted = ledger.series, ledger.series.timeframe, expected[ledger.series]
        calendar = calendar_of(frame, ledger.covered, wanted)
        if calendar is not None and not ledger.is_damaged:
            missing, unconfirmed = holes(frame, ledger.covered, calendar, wanted)
            ranges += [MissingRange(series, each) for each in missing]
            ranges += [MissingRange(series, each, is_unconfirmed=True) for each in unconfirmed]
    longest = heapq.nsmallest(most, ranges, key=lambda each: each.span.from_ms - each.span.to_ms)
    return MissingRanges(
        [
            replace(each, asked_again_ms=expected[each.series].asked_again_ms(each.span))
            if each.is_unconfirmed
            else each
            for each in longest
        ],
        len(ranges),
        sum(each.bars for each in ranges if not each.is_unconfirmed),
        sum(each.bars for each in ranges if each.is_unconfirmed),
    )


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
            replace(each, span=span, owner=owner)
            for span, owner in by_owner(each.span, candidates.get(name, ()))
        ]
    return pieces
