"""A stream: one series kept complete, and the jobs that do it.

The backfill fetches everything up to the time the stream was created; the incremental job continues
from there. Neither waits for the other: `until_ms` of the one is `since_ms` of the other.
"""

from __future__ import annotations

from collector.jobs import types
from collector.jobs.job import Cursor, JobSpec
from collector.market.timeframe import Timeframe


def stream_jobs(
    exchange_id: str,
    symbol: str,
    timeframe: str,
    *,
    now_ms: int,
    since_ms: int = 0,
    backfill: bool = True,
) -> tuple[JobSpec, ...]:
    """The jobs of one series. `since_ms` 0 means from its first bar."""
    frame = Timeframe.parse(timeframe).at(exchange_id)
    made_at = frame.floor(now_ms)
    begins = max(0, frame.floor(since_ms)) if since_ms else 0
    incremental = JobSpec(
        exchange_id,
        types.OHLCV_INCREMENTAL.name,
        symbol,
        frame.name,
        cursor=Cursor(since_ms=made_at),
    )
    history = JobSpec(
        exchange_id,
        types.OHLCV_BACKFILL.name,
        symbol,
        frame.name,
        cursor=Cursor(since_ms=begins, until_ms=made_at),
    )
    return (incremental, history) if backfill else (incremental,)
