"""What `datalayer resample`, `validate` and `missing-report` do: work on what is stored."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.cli.actions.candles import span_of
from collector.cli.actions.export import late_progress
from collector.cli.actions.known import known_exchange, known_timeframe
from collector.cli.actions.tickers import stored_symbols, wants_all
from collector.cli.actions.venue import opened_venue
from collector.cli.failures import UsageMistake
from collector.cli.opened import opened
from collector.clock import SystemClock
from collector.errors import NotFound, RetryLater
from collector.market.series import Series
from collector.market.timeframe import Timeframe
from collector.reports.clock_drift import clock_drift
from collector.reports.coverage import coverage
from collector.reports.gap_rule import within_limit
from collector.reports.missing import MissingReport
from collector.reports.validation import Demands, inspect, unreached, with_check, with_source
from collector.reports.validation_report import ValidationReport
from collector.store.copies import Copies
from collector.store.port import Swapped
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from collector.cli.verb import Asked
    from collector.reports.clock_drift import Drift
    from collector.reports.validation import SeriesReport
    from collector.settings import Settings

BASE = Timeframe.parse("1m")


@dataclass(frozen=True, slots=True)
class Lake:
    """The stored series a verb is about, in a fixed order."""

    settings: Settings
    store: Store
    exchange_id: str
    series: Sequence[Series]

    def bars(self) -> int:
        """Slots to be read; what a progress bar counts towards."""
        spans = [(each, span_of(self.store, each)) for each in self.series]
        return sum((span.to_ms - span.from_ms) // s.timeframe.ms for s, span in spans)


def lake(
    asked: Asked, names: Sequence[str], tfs: Sequence[str], exchange: str | None = None
) -> Lake:
    """What is meant by these names. NotFound when something of it is not stored."""
    settings = asked.settings()
    exchange_id = known_exchange(exchange or settings.api.adapter)
    longer = tuple(Timeframe.parse(name) for name in settings.resample.tfs)
    store = Store(settings.data_root, copies=Copies(longer, settings.storage.tail_days))
    frames = sorted({Timeframe.parse(known_timeframe(name)) for name in tfs})
    stored = {each.symbol for each in store.series(exchange_id)}
    symbols = stored_symbols(names, exchange_id, stored)
    wanted = [Series(exchange_id, symbol, frame) for symbol in symbols for frame in frames]
    return Lake(settings, store, exchange_id, list(_there(store, wanted, wants_all(names))))


def _there(store: Store, wanted: Sequence[Series], whatever: bool) -> Iterator[Series]:
    """Those with bars. A series that was named and has none is an error."""
    for series in wanted:
        try:
            span_of(store, series)
        except NotFound:
            if not whatever:
                raise
            continue
        yield series


def resampled(asked: Asked, names: Sequence[str], tfs: Sequence[str], exchange: str | None) -> Lake:
    """Writes the longer bars of every symbol's minutes; returns the minutes it worked on.

    Longer bars are made of sealed minutes, so what is not sealed yet is sealed first.
    """
    frames = [Timeframe.parse(known_timeframe(name)) for name in tfs]
    wrong = [str(frame) for frame in frames if frame <= BASE or frame.ms % BASE.ms]
    if wrong:
        raise UsageMistake(f"{', '.join(wrong)} cannot be made of 1m bars")
    found = lake(asked, names, [BASE.name], exchange)
    for series in found.series:
        # Somebody else who seals it at this moment does the same.
        with suppress(Swapped):
            found.store.compact(series)
        found.store.resample(series, frames)
    return found


def missing(
    asked: Asked, names: Sequence[str], tfs: Sequence[str], exchange: str | None
) -> MissingReport:
    """Counts every series, warns of those that break the rule."""
    found = lake(asked, names, tfs, exchange)
    limit = found.settings.quality.max_gap_pct
    counted = []
    with late_progress(found.bars()) as reached:
        step = _adding(reached)
        for series in found.series:
            counted.append(coverage(found.store, series, step))
            within_limit(counted[-1], limit)
    return MissingReport(counted, limit)


async def validated(
    asked: Asked,
    names: Sequence[str],
    tfs: Sequence[str],
    exchange: str | None,
    samples: int | None = None,
) -> ValidationReport:
    """Every check of every series. With `samples` 0 no exchange and no database is asked."""
    found = await asyncio.to_thread(lake, asked, names, tfs, exchange)
    quality = found.settings.quality
    demands = Demands(
        max_gap_pct=quality.max_gap_pct,
        strict_gaps=found.settings.resample.strict_gaps,
        samples=quality.sanity_check_samples if samples is None else samples,
    )
    now_ms = time.time_ns() // 1_000_000
    reports = await asyncio.to_thread(_inspected, found, demands, now_ms)
    report = ValidationReport(now_ms, reports, demands)
    return await _asked_the_exchange(asked, found, report) if demands.samples else report


def _inspected(found: Lake, demands: Demands, now_ms: int) -> list[SeriesReport]:
    with late_progress(found.bars()) as reached:
        step = _adding(reached)
        return [
            inspect(found.store, series, demands, now_ms=now_ms, on_rows=step)
            for series in found.series
        ]


async def _asked_the_exchange(
    asked: Asked, found: Lake, report: ValidationReport
) -> ValidationReport:
    """Adds the checks `source` and `clock`; an exchange that is away is part of the report."""
    drift: Drift | None = None
    try:
        async with (
            opened(asked, "datalayer validate") as database,
            opened_venue(database, found.settings, found.exchange_id) as venue,
        ):
            drift = await clock_drift(venue.server_ms, SystemClock())
            series = [await with_source(each, venue.fetch) for each in report.series]
        clock = drift.check()
    except RetryLater as error:
        series, clock = list(report.series), unreached(error)
    series = [with_check(each, "clock", clock) for each in series]
    return replace(report, series=series, drift=drift)


def _adding(reached: Callable[[int], None]) -> Callable[[int], None]:
    """For a bar that wants totals, from steps."""
    total = 0

    def step(rows: int) -> None:
        nonlocal total
        total += rows
        reached(total)

    return step
