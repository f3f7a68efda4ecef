"""From the ledger of a series to the jobs that fill its gaps. Pure.

A slot that no successful answer covers is missing. Until it is covered some job must own it: a
backfill that has not reached it yet, an existing gap job, or a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs import types
from collector.jobs.job import Cursor, JobSpec
from collector.market.interval import Interval, clipped, subtract, with_bars

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.market.series import Series
    from collector.pipeline.evidence import Silence

ONE_REQUEST_BARS = 500
"""Gaps this close together are filled by one job, because one request fetches them all."""


def missing(
    covered: Sequence[Interval], owned: Iterable[Interval], whole: Interval | None = None
) -> tuple[Interval, ...]:
    """The holes of a ledger that no job owns. Before its start and after its end there are none.

    `whole` is a range that must be covered from end to end, even beyond the ledger.
    """
    reached = [Interval(covered[0].from_ms, covered[-1].to_ms)] if covered else []
    expected = reached if whole is None else [*reached, whole]
    return subtract(expected, [*covered, *owned])


def gap_jobs(
    series: Series,
    holes: Sequence[Interval],
    *,
    after_ms: int = 0,
    silences: Sequence[Silence] = (),
) -> tuple[JobSpec, ...]:
    """One job for each hole that reaches past `after_ms`; holes close together share one.

    Closed time is no hole. A hole that is an open silence waits until it is due, and its job knows
    what was heard.
    """
    reach = ONE_REQUEST_BARS * series.timeframe.ms
    joined: list[Interval] = []
    for hole in with_bars(holes, series.timeframe):
        if hole.to_ms <= after_ms:
            continue
        if joined and hole.to_ms - joined[-1].from_ms <= reach:
            joined[-1] = Interval(joined[-1].from_ms, hole.to_ms)
        else:
            joined.append(hole)
    return tuple(_gap_job(series, each, holes, silences) for each in joined)


def _gap_job(
    series: Series, whole: Interval, holes: Sequence[Interval], silences: Sequence[Silence]
) -> JobSpec:
    heard = [part for each in silences if (part := each.within(whole)) is not None]
    unheard = subtract(clipped(holes, whole), [each.interval for each in heard])
    waits = bool(heard) and not with_bars(unheard, series.timeframe)
    return JobSpec(
        series.exchange_id,
        types.GAP_BACKFILL.name,
        series.symbol,
        series.timeframe.name,
        cursor=Cursor(since_ms=whole.from_ms, until_ms=whole.to_ms),
        first_run_ms=max(each.due_ms for each in heard) if waits else None,
        progress={"silences": [each.document() for each in heard]} if heard else None,
    )
