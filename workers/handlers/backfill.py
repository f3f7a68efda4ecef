"""`ohlcv_backfill`: the history of a series, from its first bar on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from collector.errors import BadRequest, NotServed
from collector.exchanges.first_bar import Beginning, first_inside
from collector.jobs.unconfirmed import progress_with_silences
from collector.market.interval import Interval
from collector.pipeline.evidence import SOONEST_MS
from collector.store.port import Corrupt
from workers.handlers.asking import series_of, with_missed
from workers.handlers.fill import Fill
from workers.handlers.merging import merged
from workers.handlers.registry import Done, Later, Outcome
from workers.handlers.sparing import note_damage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from collector.market.answer import Answer
    from collector.market.series import Series
    from workers.handlers.gap_scan import GapScan
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues


BARS_BEFORE = 100
"""Where a beginning was requested, a bar among so many before it shows that the venue serves it."""


@dataclass(frozen=True, slots=True)
class Backfill:
    """From the earliest bar to where the incremental job took over, then done for good.

    Open silences and refused bars may be left: they are missing, and the scan at the end gives them
    to gap jobs, which know what was heard and ask again when it is time.
    """

    venues: Venues
    gaps: GapScan

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        if run.cursor.until_ms is None:
            raise BadRequest("a backfill needs cursor.until_ms, the moment where it ends")
        if run.cursor.page == 0:
            beginning = await _beginning(run, venue, series)
            if beginning is None and not _was_none_before(run, venue):
                return _asked_again(run, venue)
            await _begin(run, beginning)
        begun_ms = int(run.progress.get("from_ms", run.cursor.since_ms))
        fill = Fill(run, venue, series)
        await fill.run()
        if fill.unserved:
            await run.commit(run.cursor, progress=with_missed(run, series, fill.unserved))
        # The history is whole: let any tool read it as one plain file.
        listed = await self.venues.book.is_listed(series.exchange_id, series.symbol)
        seal = venue.store.compact if listed else venue.store.freeze
        try:
            await merged(seal, series, fetched=run.bars)
        except Corrupt as error:
            note_damage(series, error)
        await self.gaps.scan(
            run,
            [series],
            any_age=True,
            whole=_whole(run, begun_ms) if listed else None,
            silences=fill.inquiry.silences,
        )
        progress = progress_with_silences(run.progress, ())
        return Done(cursor=replace(run.cursor, done=True), progress=progress)


async def _beginning(run: JobRun, venue: Venue, series: Series) -> Beginning | None:
    """Where the history begins; None when the venue has none.

    The first bar is searched for only where the requested beginning may lie before it.
    """
    since_ms = series.timeframe.floor(run.cursor.since_ms)
    if since_ms > 0 and await _is_served(run, venue, series, since_ms):
        return Beginning(since_ms, since_ms)

    def search() -> Awaitable[Beginning | None]:
        return venue.exchange.first_bar(series.symbol, series.timeframe)

    found = await run.tried(search)
    # Some venues answer empty when they are busy: an empty history is requested twice.
    return await run.tried(search) if found is None else found


async def _is_served(run: JobRun, venue: Venue, series: Series, since_ms: int) -> bool:
    """Whether a bar opens at `since_ms` or shortly before, in the lake or else at the venue."""
    frame = series.timeframe
    from_ms = max(0, frame.shift(since_ms, -BARS_BEFORE))
    to_ms = frame.shift(since_ms, 1)
    stored = partial(venue.store.rows, series, from_ms, to_ms, columns=("is_gap",))
    if False in (await asyncio.to_thread(stored))["is_gap"].to_pylist():
        return True

    def ask() -> Awaitable[Answer]:
        return venue.exchange.fetch_bars(series.symbol, frame, from_ms, BARS_BEFORE + 1)

    try:
        first_ms = first_inside(await run.tried(ask))
    except NotServed:
        return False
    return first_ms is not None and first_ms <= since_ms


def _was_none_before(run: JobRun, venue: Venue) -> bool:
    """Whether an earlier run also found no history."""
    none_ms = run.progress.get("none_ms")
    return none_ms is not None and venue.server_clock.now_ms() - none_ms >= SOONEST_MS


def _asked_again(run: JobRun, venue: Venue) -> Later:
    none_ms = run.progress.get("none_ms") or venue.server_clock.now_ms()
    return Later(SOONEST_MS, run.cursor, {**run.progress, "none_ms": none_ms})


async def _begin(run: JobRun, beginning: Beginning | None) -> None:
    """Moves the cursor to the first bar there is.

    `progress.from_ms` is where bars are expected: earlier than the first bar when answers about it
    contradict each other. `ahead` and `missed` are there when the job began later before, and are
    still true.
    """
    until, since = run.cursor.until_ms or 0, run.cursor.since_ms
    first_ms, from_ms = until, until
    if beginning is not None:
        first_ms, from_ms = max(beginning.first_ms, since), max(beginning.from_ms, since)
    begun = replace(run.cursor, since_ms=min(first_ms, until), page=1)
    kept = {name: run.progress[name] for name in ("ahead", "missed") if run.progress.get(name)}
    from_ms = min([from_ms, until, *(start for start, _ in kept.get("ahead", ()))])
    await run.commit(begun, progress={**kept, "from_ms": from_ms, "until_ms": until})


def _whole(run: JobRun, from_ms: int) -> Interval | None:
    """What the job was to fetch. Its end may be unsettled, too, and behind it there may be none."""
    until_ms = run.cursor.until_ms
    return None if until_ms is None or from_ms >= until_ms else Interval(from_ms, until_ms)
