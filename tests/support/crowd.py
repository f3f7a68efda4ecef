"""A collector with very many jobs and series, written down as it would stand after a while."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from bson import ObjectId

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.durations import DAY_MS, HOUR_MS
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from collector.mongo.client import Database

EXCHANGES = ("binance", "bybit", "kraken", "kucoin", "okx")
TYPES = ("ohlcv_incremental", "ohlcv_backfill", "gap_backfill")
TIMEFRAMES = ("1m", "5m", "1h", "1d")
STATES = (State.IDLE, State.QUEUED, State.WAITING, State.RUNNING)
INSERTED_AT_ONCE = 5_000
FAILED_OF = 1_000
DAYS = 90


async def fill_jobs(database: Database, jobs: int) -> None:
    """Live jobs of every kind, one in a thousand failed."""
    registry, rng = ConnectorRegistry(database), random.Random(1)
    for exchange_id in EXCHANGES:
        await registry.ensure(exchange_id, Limits(1_000, 1_000))
    made, _ = await JobQueue(database).add(JobSpec(EXCHANGES[0], "count", "X/USDT", "1m"))
    await database.jobs.delete_many({})
    now_ms = await database.now_ms()
    for start in range(0, jobs, INSERTED_AT_ONCE):
        documents = []
        for number in range(start, min(start + INSERTED_AT_ONCE, jobs)):
            failed = number % FAILED_OF == 7
            since = now_ms - rng.randrange(1, 90) * DAY_MS
            documents.append(
                {
                    **made.document,
                    "_id": ObjectId(),
                    "exchange_id": rng.choice(EXCHANGES),
                    "type": rng.choice(TYPES),
                    "symbol": f"C{number // 4}/USDT",
                    "timeframe": rng.choice(TIMEFRAMES),
                    "unique_key": str(number),
                    "status": "paused" if failed else "active",
                    "state": (State.FAILED if failed else rng.choice(STATES)).value,
                    "cursor": {**made.document["cursor"], "since_ms": since, "until_ms": now_ms},
                    "progress": {"from_ms": now_ms - 90 * DAY_MS, "until_ms": now_ms},
                    "next_run_at": now_ms + DAY_MS,
                }
            )
        await database.jobs.insert_many(documents, ordered=False)


def fill_lake(root: Path, now_ms: int, series: int) -> None:
    """Sealed hours of many markets; one in ten has a hole."""
    store, end = Store(root), now_ms - now_ms % HOUR_MS
    begin = end - DAYS * DAY_MS
    for number in range(series):
        exchange_id = EXCHANGES[number % len(EXCHANGES)]
        each = Series.of(exchange_id, f"S{number:03}/USDT", "1h")
        holes = [begin + 20 * DAY_MS, begin + 22 * DAY_MS] if number % 10 == 3 else []
        edges = [begin, *holes, end]
        for first, until in zip(edges[::2], edges[1::2], strict=True):
            rows = [(ts, 1.0, 2.0, 0.5, 1.5, 10.0, 15.0) for ts in range(first, until, HOUR_MS)]
            batch, covered = CandleBatch.of(rows), Interval(first, until)
            store.append_page(each, batch, covered, fence=1, known_at=now_ms)
        store.compact(each)
