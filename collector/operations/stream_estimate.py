"""What collecting some series will cost: how many requests, and how long at this budget.

An estimate: pages are full, nobody else uses the budget, and answers come at once.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.durations import DAY_MS
from collector.errors import NotFound
from collector.exchanges.registry import quirks_for
from collector.jobs import types
from collector.jobs.earlier import begins_ms
from collector.jobs.queue import JobQueue
from collector.market.timeframe import Timeframe
from collector.markets.book import MarketBook

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.connectors.connector import Limits
    from collector.exchanges.quirks.record import Quirks
    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from collector.operations.streams import SeriesRequest

ASSUMED_BEGIN_MS = 1_483_228_800_000
"""2017-01-01: where a history begins whose market tells no listing."""
PAGE = 1000
_BAR_ENDPOINTS = ("kline", "candle")


@dataclass(frozen=True, slots=True)
class StreamEstimate:
    """The cost of some series."""

    symbols: tuple[str, ...]
    series: int
    series_new: int
    """Those that have no job for new bars yet."""
    bars: int
    """Bars of history, slots without a trade among them."""
    requests: int
    """Requests for the history."""
    seconds: int
    """How long these take at least, at the connector's budget."""
    requests_per_day: int
    """Requests for new bars, once the history is there."""
    assumed: int
    """Series whose beginning is not known; they are counted from 2017 on."""


async def estimate(
    database: Database, wanted: SeriesRequest, symbols: Sequence[str]
) -> StreamEstimate:
    """The cost of what `wanted` asks for and is not there; `symbols` are those it means."""
    quirks = await asyncio.to_thread(quirks_for, wanted.exchange_id)
    now_ms = await database.now_ms()
    listings = await MarketBook(database).listings(wanted.exchange_id, symbols)
    jobs = await _jobs(database, wanted.exchange_id)
    bars = requests = assumed = new = per_day = 0
    for symbol, name in product(symbols, wanted.timeframes):
        frame = Timeframe.parse(name).at(wanted.exchange_id)
        new += (types.OHLCV_INCREMENTAL.name, symbol, name) not in jobs
        per_day += max(1, DAY_MS // frame.ms)
        if not wanted.backfill:
            continue
        listed_ms = (listings.get(symbol) or {}).get("listed_ms")
        from_ms = max(wanted.since or 0, listed_ms or 0) or ASSUMED_BEGIN_MS
        assumed += not wanted.since and not listed_ms
        there = jobs.get((types.OHLCV_BACKFILL.name, symbol, name))
        to_ms = now_ms if there is None else _reached(there, wanted.since)
        slots = frame.count(from_ms, to_ms) if from_ms < to_ms else 0
        bars += slots
        requests += math.ceil(slots / min(quirks.default_page, quirks.page(frame.ms)))
    limits = await _limits(database, wanted.exchange_id)
    series = len(symbols) * len(wanted.timeframes)
    seconds = _seconds(requests, _weight(quirks), limits)
    return StreamEstimate(tuple(symbols), series, new, bars, requests, seconds, per_day, assumed)


def _reached(job: Job, since: int | None) -> int:
    """Up to where a backfill that is there would be extended; 0 when it would not."""
    return begins_ms(job) if since is not None else 0


def _weight(quirks: Quirks) -> int:
    """What one page of bars weighs."""
    if quirks.cost_ms is not None:
        return quirks.weight_of_cost(1)
    named = [name for name in quirks.weights if any(word in name for word in _BAR_ENDPOINTS)]
    return max((quirks.weight(name, quirks.default_page) for name in named), default=1)


def _seconds(requests: int, weight: int, limits: Limits) -> int:
    """By the window that takes longest."""
    spans = (
        requests * window.cost(weight) / window.limit * window.period_ms
        for window in limits.all_windows
    )
    return math.ceil(max(spans) / 1000)


async def _limits(database: Database, exchange_id: str) -> Limits:
    try:
        return (await ConnectorRegistry(database).get(exchange_id)).limits
    except NotFound:
        return await asyncio.to_thread(venue_limits, exchange_id)


async def _jobs(
    database: Database, exchange_id: str
) -> Mapping[tuple[str, str | None, str | None], Job]:
    """The jobs of its series, by type, symbol and timeframe."""
    queue = JobQueue(database)
    found: list[Job] = []
    kinds = [types.OHLCV_INCREMENTAL.name, types.OHLCV_BACKFILL.name]
    filters = {"exchange_id": [exchange_id], "type": kinds}
    while True:
        after = found[-1].id if found else None
        page = await queue.find(filters, after=after, limit=PAGE)
        found += page
        if len(page) < PAGE:
            return {(job.type, job.symbol, job.timeframe): job for job in found}
