"""Work on what is stored: longer bars, checks of every series, and what each lacks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.clock import SystemClock
from collector.errors import BadRequest, InvalidInput, NotFound, RetryLater, SessionNotHeld
from collector.exchanges.registry import is_exclusive
from collector.market.series import Series
from collector.market.timeframe import MINUTE, Timeframe
from collector.operations.connectors import check_exchange
from collector.operations.expecting import Expecting, expecting
from collector.operations.market_names import check_timeframe
from collector.operations.opened_database import opened_database, quietly
from collector.operations.tickers import stored_symbols, wants_all
from collector.operations.verb_venue import have_compared, opened_venue
from collector.pipeline.resample import divides
from collector.reader import not_stored
from collector.reports.clock_drift import clock_drift
from collector.reports.coverage import coverage
from collector.reports.file_check import inspect_with_files
from collector.reports.gap_rule import within_limit
from collector.reports.missing import MissingReport
from collector.reports.validation import Comparing, Demands, unreached
from collector.reports.validation_report import ValidationReport
from collector.store.copies import Copies
from collector.store.port import Corrupt, Swapped
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collector.market.interval import Interval
    from collector.operations.deployment import Deployment
    from collector.operations.verb_venue import VerbVenue
    from collector.reports.check import Check
    from collector.reports.clock_drift import Drift
    from collector.reports.validation import SeriesReport
    from collector.settings import Settings


Bar = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Called with the number of bars to read; returns a function that takes how many were read."""


@contextmanager
def unwatched(_total: int) -> Iterator[Callable[[int], None]]:
    """For work without a progress bar."""
    yield lambda _: None


@dataclass(frozen=True, slots=True)
class Lake:
    """The stored series that are meant, in a fixed order."""

    settings: Settings
    store: Store
    exchange_id: str
    series: Sequence[Series]

    def bars(self) -> int:
        """Slots to be read; what a progress bar counts towards."""
        slots = 0
        for each in self.series:
            with suppress(Corrupt):  # Its length is unknown.
                span = span_of(self.store, each)
                slots += each.timeframe.count(span.from_ms, span.to_ms)
        return slots


def lake(
    where: Deployment, names: Sequence[str], tfs: Sequence[str], exchange: str | None = None
) -> Lake:
    """The series of these names. NotFound when one of them is not stored."""
    settings = where.settings
    exchange_id = check_exchange(exchange or settings.api.adapter)
    longer = tuple(Timeframe.parse(name) for name in settings.resample.tfs)
    store = Store(settings.data_root, copies=Copies(longer, settings.storage.tail_days))
    frames = sorted({Timeframe.parse(check_timeframe(name)) for name in tfs})
    stored = {each.symbol for each in store.series(exchange_id)}
    symbols = stored_symbols(names, exchange_id, stored)
    wanted = [Series(exchange_id, symbol, frame) for symbol in symbols for frame in frames]
    return Lake(settings, store, exchange_id, list(_there(store, wanted, wants_all(names))))


def span_of(store: Store, series: Series) -> Interval:
    """From the first to the last bar that can be read. NotStored names what there is instead."""
    with store.reading(series) as reading:
        span = reading.span()
    if span is None:
        raise not_stored(store, series)
    return span


def _there(store: Store, wanted: Sequence[Series], whatever: bool) -> Iterator[Series]:
    """Those with bars, or with damage. A series that was named and has none is an error."""
    for series in wanted:
        try:
            with suppress(Corrupt):
                span_of(store, series)
        except NotFound:
            if not whatever:
                raise
            continue
        yield series


def resampled(
    where: Deployment, names: Sequence[str], tfs: Sequence[str], exchange: str | None
) -> Lake:
    """Writes the longer bars of every symbol's minutes; returns the minutes it worked on.

    Longer bars are made of sealed minutes, so what is not sealed yet is sealed first.
    """
    frames = [Timeframe.parse(check_timeframe(name)) for name in tfs]
    wrong = [str(frame) for frame in frames if frame <= MINUTE or not divides(MINUTE, frame)]
    if wrong:
        reason = f"{', '.join(wrong)} cannot be made of 1m bars"
        raise InvalidInput("tfs", "unknown_timeframe", reason)
    found = lake(where, names, [MINUTE.name], exchange)
    for series in found.series:
        # Another process that seals it at this moment does the same.
        with suppress(Swapped):
            found.store.compact(series)
        found.store.resample(series, frames)
    return found


async def missing(
    where: Deployment,
    names: Sequence[str],
    tfs: Sequence[str],
    exchange: str | None,
    bar: Bar = unwatched,
) -> tuple[MissingReport, list[str]]:
    """Counts every series, warns of those that break the rule; also a note for the report."""
    found = await asyncio.to_thread(lake, where, names, tfs, exchange)
    expected = await expecting(where, found.series, _now_ms())
    return await asyncio.to_thread(_counted, found, expected, bar), expected.notes


def _counted(found: Lake, expected: Expecting, bar: Bar) -> MissingReport:
    limit = found.settings.quality.max_gap_pct
    counted = []
    with bar(found.bars()) as reached:
        step = _adding(reached)
        for series in found.series:
            counted.append(coverage(found.store, series, expected.of[series], step))
            within_limit(counted[-1], limit)
    return MissingReport(counted, limit)


async def validated(
    where: Deployment,
    names: Sequence[str],
    tfs: Sequence[str],
    exchange: str | None,
    samples: int | None = None,
    bar: Bar = unwatched,
) -> tuple[ValidationReport, list[str]]:
    """Every check of every series, and a note for the report.

    With `samples` 0 no exchange is called.
    """
    found = await asyncio.to_thread(lake, where, names, tfs, exchange)
    quality = found.settings.quality
    demands = Demands(
        max_gap_pct=quality.max_gap_pct,
        strict_gaps=found.settings.resample.strict_gaps,
        samples=quality.sanity_check_samples if samples is None else samples,
    )
    now_ms = _now_ms()
    expected = await expecting(where, found.series, now_ms)
    reports = await asyncio.to_thread(_inspected, found, demands, expected, now_ms, bar)
    report = ValidationReport(now_ms, reports, demands)
    if demands.samples:
        report = await _asked_the_exchange(where, found, report, expected)
    return report, expected.notes


def _inspected(
    found: Lake, demands: Demands, expected: Expecting, now_ms: int, bar: Bar
) -> list[SeriesReport]:
    with bar(found.bars()) as reached:
        step = _adding(reached)
        return [
            inspect_with_files(
                found.store, series, demands, expected.of[series], now_ms=now_ms, on_rows=step
            )
            for series in found.series
        ]


async def _asked_the_exchange(
    where: Deployment, found: Lake, report: ValidationReport, expected: Expecting
) -> ValidationReport:
    """Adds the checks `source` and `clock`; an unreachable exchange is part of the report.

    Of an exchange whose account allows one login a worker compares the bars, after this.
    """
    try:
        if is_exclusive(found.exchange_id):
            with quietly():
                async with opened_database(where, "datalayer validate") as database:
                    await have_compared(database, found.exchange_id)
            raise SessionNotHeld(
                f"{found.exchange_id} allows one login: a worker compares its bars now, "
                "in a verify_source job"
            )
        with quietly():
            async with (
                opened_database(where, "datalayer validate") as database,
                opened_venue(database, found.settings, found.exchange_id) as venue,
            ):
                drift, clock = await _clock(venue)
                compared = Comparing(venue.fetch)
                series = [
                    await compared.of(each, is_listed=expected.of[each.series].is_listed)
                    for each in report.series
                ]
    except RetryLater as error:
        drift, clock = None, unreached(error)
        series = [each.with_source(unreached(error)) for each in report.series]
    series = [each.with_check("clock", clock) for each in series]
    return replace(report, series=series, drift=drift)


async def _clock(venue: VerbVenue) -> tuple[Drift | None, Check]:
    try:
        drift = await clock_drift(venue.server_ms, SystemClock())
    except (RetryLater, BadRequest) as error:
        return None, unreached(error)
    return drift, drift.check()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _adding(reached: Callable[[int], None]) -> Callable[[int], None]:
    """For a bar that wants totals, from steps."""
    total = 0

    def step(rows: int) -> None:
        nonlocal total
        total += rows
        reached(total)

    return step
