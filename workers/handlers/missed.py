"""What a venue no longer has when a job requests it: recorded in the job, and logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector import logs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.market.interval import Interval
    from collector.market.series import Series
    from workers.job_run import JobRun

MISSED_KEPT = 20

_log = logs.get("workers.missed")


def progress_with(run: JobRun, stretches: Iterable[Sequence[int]]) -> dict[str, Any]:
    """A job's progress with further ranges (epoch ms) that the venue no longer served."""
    missed = [*(run.progress.get("missed") or ()), *map(list, stretches)]
    return {**run.progress, "missed": missed[-MISSED_KEPT:]}


def with_missed(run: JobRun, series: Series, stretches: Sequence[Interval]) -> dict[str, Any]:
    """The same for bars. Their slots are missing: archives or trades may mend them."""
    for each in stretches:
        _log.warning(
            "bars_not_served",
            exchange=series.exchange_id,
            symbol=series.symbol,
            timeframe=series.timeframe.name,
            from_ms=each.from_ms,
            to_ms=each.to_ms,
        )
    return progress_with(run, [(each.from_ms, each.to_ms) for each in stretches])
