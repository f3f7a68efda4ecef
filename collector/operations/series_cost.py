"""What it would take to collect series: requests, and time at the exchange's budget."""

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
from collector.jobs.asked_for import asked_for
from collector.jobs.history import count_backfilled
from collector.market.timeframe import MINUTE, Timeframe
from collector.markets.book import MarketBook
from collector.operations.connectors import check_exchange
from collector.operations.market_names import MarketNames, check_bars
from collector.operations.new_job import check_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.connectors.window import Window
    from collector.exchanges.quirks.record import Quirks
    from collector.jobs.asked_for import AskedFor
    from collector.mongo.client import Database
    from collector.operations.streams import SeriesRequest


@dataclass(frozen=True, slots=True)
class SeriesCost:
    """An estimate. Seconds are those of the budget alone: the way to the exchange comes on top."""

    symbols: tuple[str, ...]
    """Those that are meant."""
    series: int
    existing: int
    """Series of these whose history is stored or being fetched already."""
    unknown: int
    """Series whose first bar is not known, so that their history is not in the figures."""
    bars: int
    requests: int
    seconds: float
    seconds_ahead: float
    """What the backfills of the exchange that are under way have still to take."""
    requests_per_day: int
    """For the new bars, from then on."""
    share_per_day: float
    """Of the budget of a day."""
    has_connector: bool


async def series_cost(database: Database, wanted: SeriesRequest) -> SeriesCost:
    """InvalidInput for names that do not exist. Sends no request, and makes nothing."""
    exchange_id = check_exchange(wanted.exchange_id)
    now_ms = await database.now_ms()
    check_range(wanted.since, None, now_ms)
    await check_bars(exchange_id)
    names, fields = MarketNames(database), ("symbols", "timeframes")
    symbols = await names.meant(exchange_id, wanted.symbols, field=fields[0])
    frames = dict.fromkeys(wanted.timeframes)
    await names.check_series(exchange_id, symbols, list(frames), fields=fields)
    # An exchange without a record needs an import of ccxt.
    quirks = await asyncio.to_thread(quirks_for, exchange_id)
    windows, has_connector = await _windows(database, exchange_id)
    markets = await MarketBook(database).listings(exchange_id, symbols)
    known = await asked_for(database, exchange_id, symbols)
    figures = _Figures(quirks, windows)
    for symbol, name in product(symbols, frames):
        frame = Timeframe.parse(name).at(exchange_id, symbol)
        listed = (markets.get(symbol) or {}).get("listed_ms")
        since = wanted.since if wanted.since is not None else listed
        figures.add(frame, since, now_ms, known.get((symbol, frame.name)), fetch=wanted.backfill)
    ahead = sum(each.bars_left for each in await count_backfilled(database, exchange_id))
    return figures.cost(symbols, ahead, has_connector=has_connector)


async def _windows(database: Database, exchange_id: str) -> tuple[tuple[Window, ...], bool]:
    """Those of the connector, or those that a new one would have."""
    try:
        return (await ConnectorRegistry(database).get(exchange_id)).limits.all_windows, True
    except NotFound:
        limits = await asyncio.to_thread(venue_limits, exchange_id)
        return limits.all_windows, False


class _Figures:
    """Adds up series."""

    def __init__(self, quirks: Quirks, windows: Iterable[Window]) -> None:
        self._quirks = quirks
        weight = quirks.weight_of_bars(quirks.default_page)
        self._per_second = min(
            1000 * window.limit / window.period_ms / window.cost(weight) for window in windows
        )
        self._series = self._existing = self._unknown = 0
        self._bars = self._requests = 0
        self._daily = 0.0

    def add(
        self,
        frame: Timeframe,
        since_ms: int | None,
        now_ms: int,
        known: AskedFor | None,
        *,
        fetch: bool,
    ) -> None:
        self._series += 1
        self._daily += DAY_MS / frame.ms
        until_ms = now_ms
        if known is not None:
            begun = known.begun_ms if known.begun_ms is not None else known.since_ms
            if begun is not None:
                self._existing += 1
                self._daily -= DAY_MS / frame.ms
                until_ms = begun
        if not fetch or (since_ms is not None and since_ms >= until_ms):
            return
        if since_ms is None:
            self._unknown += until_ms == now_ms
            return
        bars = max(0, frame.count(frame.ceil(since_ms), frame.floor(until_ms)))
        bars = min(bars, self._quirks.oldest_bars or bars)
        page = min(self._quirks.default_page, self._quirks.page(frame.ms))
        self._bars += bars
        self._requests += math.ceil(bars / page)

    def cost(self, symbols: Sequence[str], bars_ahead: int, *, has_connector: bool) -> SeriesCost:
        page = min(self._quirks.default_page, self._quirks.page(MINUTE.ms))
        daily = round(self._daily)
        return SeriesCost(
            symbols=tuple(symbols),
            series=self._series,
            existing=self._existing,
            unknown=self._unknown,
            bars=self._bars,
            requests=self._requests,
            seconds=self._requests / self._per_second,
            seconds_ahead=math.ceil(bars_ahead / page) / self._per_second,
            requests_per_day=daily,
            share_per_day=daily / (86_400 * self._per_second),
            has_connector=has_connector,
        )
