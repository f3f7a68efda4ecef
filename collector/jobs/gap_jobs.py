"""From the ledger of a series to the jobs that mend it. Pure.

A slot that no successful answer covers is missing. Some job must own it until it is not: a backfill
that has not come there yet, a gap job that is under way already, or a new gap job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.job import Cursor, JobSpec
from collector.market.interval import Interval, subtract

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.jobs.job import Job
    from collector.market.series import Series

ONE_REQUEST_BARS = 500
"""Gaps this close together are mended by one job: one request brings them all."""


def missing(covered: Sequence[Interval], owned: Iterable[Interval]) -> tuple[Interval, ...]:
    """The holes of a ledger that nobody owns. Before its start and after its end there are none."""
    if not covered:
        return ()
    whole = Interval(covered[0].from_ms, covered[-1].to_ms)
    return subtract([whole], [*covered, *owned])


def gap_jobs(
    series: Series, holes: Sequence[Interval], *, after_ms: int = 0
) -> tuple[JobSpec, ...]:
    """A job for each hole that reaches behind `after_ms`, and one for holes close together."""
    reach = ONE_REQUEST_BARS * series.timeframe.ms
    joined: list[Interval] = []
    for hole in holes:
        if hole.to_ms <= after_ms:
            continue
        if joined and hole.to_ms - joined[-1].from_ms <= reach:
            joined[-1] = Interval(joined[-1].from_ms, hole.to_ms)
        else:
            joined.append(hole)
    return tuple(
        JobSpec(
            series.exchange_id,
            "gap_backfill",
            series.symbol,
            series.timeframe.name,
            cursor=Cursor(since_ms=each.from_ms, until_ms=each.to_ms),
        )
        for each in joined
    )


def owned_by(jobs: Iterable[Job]) -> dict[tuple[str, str], list[Interval]]:
    """What unfinished backfills and gap jobs are still to fetch, by symbol and timeframe."""
    owned: dict[tuple[str, str], list[Interval]] = {}
    for job in jobs:
        since, until = job.cursor.since_ms, job.cursor.until_ms
        if not job.symbol or not job.timeframe or job.cursor.done:
            continue
        if until is not None and since < until:
            owned.setdefault((job.symbol, job.timeframe), []).append(Interval(since, until))
    return owned
