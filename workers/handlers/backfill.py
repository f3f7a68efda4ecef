"""`ohlcv_backfill`: the history of a series, from its first bar on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.errors import BadRequest
from collector.jobs.silences import SAME_AGAIN_MS
from collector.market.interval import Interval
from collector.store.port import Corrupt
from workers.handlers.bars import series_of
from workers.handlers.fill import Fill
from workers.handlers.merging import merged
from workers.handlers.missed import with_missed
from workers.handlers.registry import Done, Later, Outcome
from workers.handlers.sparing import note_damage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from collector.market.series import Series
    from workers.handlers.gap_scan import GapScan
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues


@dataclass(frozen=True, slots=True)
class Backfill:
    """From the earliest bar to where the incremental job took over, then done for good.

    Slots that the venue reported as empty, and refused bars, may be left: they are missing, and the
    scan at the end gives them to gap jobs.
    """

    venues: Venues
    gaps: GapScan

    async def __call__(self, run: JobRun) -> Outcome:
        series = series_of(run.job)
        venue = await run.tried(lambda: self.venues.of(series))
        if run.cursor.until_ms is None:
            raise BadRequest("a backfill needs cursor.until_ms, the moment where it ends")
        if run.cursor.page == 0:
            first_ms = await _first_bar(run, venue, series)
            if first_ms is None and not _was_none_before(run, venue):
                return _asked_again(run, venue)
            await _begin(run, first_ms)
        begun_ms = int(run.progress.get("from_ms", run.cursor.since_ms))
        fill = Fill(run, venue, series)
        await fill.to_the_end()
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
            run, [series], any_age=True, whole=_whole(run, begun_ms) if listed else None
        )
        return Done(cursor=replace(run.cursor, done=True))


async def _first_bar(run: JobRun, venue: Venue, series: Series) -> int | None:
    """When the history begins; None when the venue has none."""

    def search() -> Awaitable[int | None]:
        return venue.exchange.earliest_bar_ms(series.symbol, series.timeframe)

    first = await run.tried(search)
    # Some venues answer empty when they are busy: an empty history is requested twice.
    return await run.tried(search) if first is None else first


def _was_none_before(run: JobRun, venue: Venue) -> bool:
    """Whether an earlier run also found no history."""
    none_ms = run.progress.get("none_ms")
    return none_ms is not None and venue.server_clock.now_ms() - none_ms >= SAME_AGAIN_MS


def _asked_again(run: JobRun, venue: Venue) -> Later:
    none_ms = run.progress.get("none_ms") or venue.server_clock.now_ms()
    return Later(SAME_AGAIN_MS, run.cursor, {**run.progress, "none_ms": none_ms})


async def _begin(run: JobRun, first_ms: int | None) -> None:
    """Moves the cursor to the first bar there is.

    `ahead` and `missed` are there when the job began later before, and are still true.
    """
    until = run.cursor.until_ms or 0
    since = until if first_ms is None else max(first_ms, run.cursor.since_ms)
    begun = replace(run.cursor, since_ms=min(since, until), page=1)
    kept = {name: run.progress[name] for name in ("ahead", "missed") if run.progress.get(name)}
    from_ms = min([begun.since_ms, *(start for start, _ in kept.get("ahead", ()))])
    await run.commit(begun, progress={**kept, "from_ms": from_ms, "until_ms": until})


def _whole(run: JobRun, from_ms: int) -> Interval | None:
    """What the job was to fetch. Its end may be unsettled, too, and behind it there may be none."""
    until_ms = run.cursor.until_ms
    return None if until_ms is None or from_ms >= until_ms else Interval(from_ms, until_ms)
