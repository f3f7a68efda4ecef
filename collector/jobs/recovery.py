"""Where jobs go on after their database was lost: what was requested, less what is stored. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.gap_jobs import gap_jobs
from collector.jobs.job import Cursor, JobSpec, RecoveredJob
from collector.jobs.states import Status
from collector.market.interval import Interval, subtract, with_bars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.cursor import CursorShape
    from collector.jobs.wishes import JobWish
    from collector.market.series import Series


def recovered_job(wish: JobWish, cursor: CursorShape | None = None) -> JobSpec:
    """The job as it was requested, at a cursor or at the beginning."""
    return JobSpec(
        wish.exchange_id,
        wish.type,
        wish.symbol,
        wish.timeframe,
        schedule=wish.usual_schedule,
        priority=wish.priority,
        cursor=Cursor() if cursor is None else cursor,
        params=wish.params,
        recovered=_before(wish),
    )


def _before(wish: JobWish) -> RecoveredJob:
    return RecoveredJob(
        Status(wish.status), requested_since=wish.requested_since, declared=wish.declared
    )


def recovered_series(
    series: Series, wishes: Sequence[JobWish], covered: Sequence[Interval], last_ts: int
) -> tuple[JobSpec, ...]:
    """The jobs of one series. `covered` is what answers cover, `last_ts` its newest bar."""
    history = [each for each in wishes if each.type in types.history()]
    specs = [_history(series, wish, covered) for wish in history]
    for wish in wishes:
        if wish.type == types.OHLCV_INCREMENTAL.name:
            specs += _incremental(series, wish, history, covered, last_ts)
    return tuple(specs)


def _history(series: Series, wish: JobWish, covered: Sequence[Interval]) -> JobSpec:
    """From the first missing slot on; what is stored behind it is ahead, and never requested."""
    until_ms = wish.at.until_ms or 0
    is_begun = wish.begins_ms is not None
    begins_ms = wish.at.since_ms if wish.begins_ms is None else wish.begins_ms
    whole = [Interval(begins_ms, until_ms)] if begins_ms < until_ms else []
    holes = with_bars(subtract(whole, covered), series.timeframe)
    stored = subtract(whole, subtract(whole, covered))
    job, before = recovered_job(wish), _before(wish)
    if is_begun:
        before = replace(before, progress={"from_ms": begins_ms, "until_ms": until_ms})
    if not holes:
        done = Cursor(since_ms=until_ms, until_ms=until_ms, page=1, done=True)
        return replace(job, cursor=done, recovered=before)
    # A job on page 0 looks for the first bar there is, a later page continues at its cursor.
    since_ms = holes[0].from_ms if is_begun else begins_ms
    ahead = [[each.from_ms, each.to_ms] for each in stored if each.to_ms > since_ms]
    status = Status.ACTIVE if wish.at.done else before.status
    return replace(
        job,
        cursor=Cursor(since_ms=since_ms, until_ms=until_ms, page=int(is_begun)),
        recovered=replace(
            before, status=status, progress={**(before.progress or {}), "ahead": ahead}
        ),
    )


def _incremental(
    series: Series,
    wish: JobWish,
    history: Sequence[JobWish],
    covered: Sequence[Interval],
    last_ts: int,
) -> tuple[JobSpec, ...]:
    """From the end of what is stored, but not from before the end of the history's job."""
    ends = [each.at.until_ms for each in history if each.type == types.OHLCV_BACKFILL.name]
    began = min((each for each in ends if each is not None), default=wish.at.since_ms)
    stored_until = covered[-1].to_ms if covered else 0
    since_ms = max(began, stored_until)
    holes = subtract([Interval(began, since_ms)] if began < since_ms else [], covered)
    cursor = Cursor(since_ms=since_ms, last_ts=last_ts)
    return (recovered_job(wish, cursor), *gap_jobs(series, holes))
