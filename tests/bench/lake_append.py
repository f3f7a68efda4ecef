"""What an append costs when the series has one day of history, and when it has ten years."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING

from collector.store.group_commit import GroupCommit
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.lake_bars import SERIES, append, hull, minutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from collector.market.candles import CandleBatch
    from collector.store.store import Store

AT_MOST = 1.2
PAGES = 10
DAYS_AHEAD = 10_000
"""Behind the end of both histories."""

_fresh_days = itertools.count(DAYS_AHEAD)


async def run(bench: Bench, short: Store, long: Store, days: int) -> list[Figure]:
    figures, rows = [], []
    for name, contender in (("append_page", _pages), ("GroupCommit", _groups)):
        samples = await in_turn(
            {"short": contender(short), "long": contender(long)},
            bench.pick(15, 7),
            settled=lambda so_far: ratio(so_far, "long", "short") <= AT_MOST,
        )
        rows.append([name, *(1000 * min(samples[each]) for each in ("short", "long"))])
        flat = ratio(samples, "long", "short")
        figures.append(Figure(f"lake.{name}, {days:,} days / 1 day", flat, at_most=AT_MOST))
    bench.show("a page of 1,440 bars, ms", ["", "after 1 day", f"after {days:,} days"], rows)
    return figures


def _a_day() -> CandleBatch:
    return minutes(1, next(_fresh_days))


def _pages(store: Store) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        batches = [_a_day() for _ in range(PAGES)]
        started = time.perf_counter()
        for batch in batches:
            await asyncio.to_thread(append, store, batch)
        return (time.perf_counter() - started) / PAGES

    return seconds


def _groups(store: Store) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        batches = [_a_day() for _ in range(PAGES)]
        async with GroupCommit(store, SERIES.exchange_id, gather_s=0.0) as commit:
            started = time.perf_counter()
            for batch in batches:
                known_at = int(batch.ts[-1])
                await commit.add(SERIES, batch, hull(batch), fence=1, known_at=known_at)
            return (time.perf_counter() - started) / PAGES

    return seconds
