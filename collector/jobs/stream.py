"""A stream: one series kept whole, as the jobs that do it.

The backfill fetches everything up to the moment the stream was made; the incremental job takes
over there. Neither waits for the other, and the seam between them belongs to both readings of it:
`until_ms` of the one is `since_ms` of the other.
"""

from __future__ import annotations

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
    frame = Timeframe.parse(timeframe)
    made_at = frame.floor(now_ms)
    incremental = JobSpec(
        exchange_id,
        "ohlcv_incremental",
        symbol,
        frame.name,
        cursor=Cursor(since_ms=made_at),
    )
    history = JobSpec(
        exchange_id,
        "ohlcv_backfill",
        symbol,
        frame.name,
        cursor=Cursor(since_ms=since_ms, until_ms=made_at),
    )
    return (incremental, history) if backfill else (incremental,)
