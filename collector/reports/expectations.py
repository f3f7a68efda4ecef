"""The expected range of series, from their jobs and markets."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from collector.jobs.asked_for import AskedFor, asked_for
from collector.jobs.claims import claimed
from collector.jobs.unconfirmed import is_unconfirmed
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.markets.book import MarketBook
from collector.pipeline.resample import divides
from collector.reports.expected import LATE_MS, Expected

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.market.series import Series
    from collector.mongo.client import Database, Document

SYMBOLS_AT_ONCE = 200


async def expectations(
    database: Database, series: Sequence[Series], now_ms: int
) -> dict[Series, Expected]:
    """For each series what its jobs request, up to the last closed bar or its delisting."""
    found: dict[Series, Expected] = {}
    for exchange_id, some in _in_batches(series):
        symbols = [each.symbol for each in some]
        jobs = await asked_for(database, exchange_id, symbols)
        markets = await MarketBook(database).listings(exchange_id, symbols)
        for each in some:
            found[each] = expected_of(each, jobs, markets.get(each.symbol), now_ms)
    return found


async def expected_ranges(database: Database, series: Sequence[Series]) -> dict[Series, Interval]:
    """For each series of a listed market the slots that its jobs have left behind them.

    They reach from where the backfill of the series began, or else from where its job for new bars
    was made, to the cursor of that job. A slot in between that is not covered, and that no job has
    still to fetch, was lost or left open, also before and behind everything that is stored. Read
    this before the ledgers and before what jobs own: all of that only grows until a cursor moves.
    A series of which nothing is known to be behind a job is left out.
    """
    found: dict[Series, Interval] = {}
    for exchange_id, some in _in_batches(series):
        symbols = sorted({each.symbol for each in some})
        claims = await claimed(database, exchange_id, symbols)
        markets = await MarketBook(database).listings(exchange_id, symbols)
        for each in some:
            market = markets.get(each.symbol)
            if each in claims and (market is None or market["active"]):
                claim, frame = claims[each], each.timeframe
                start, end = frame.ceil(claim.from_ms), frame.floor(claim.to_ms)
                if start < end:
                    found[each] = Interval(start, end)
    return found


def _in_batches(series: Sequence[Series]) -> Iterator[tuple[str, list[Series]]]:
    """By exchange, so many at a time as one statement asks for."""
    ordered = sorted(series, key=lambda each: (each.exchange_id, each.symbol))
    for exchange_id, its in groupby(ordered, lambda each: each.exchange_id):
        wanted = list(its)
        for start in range(0, len(wanted), SYMBOLS_AT_ONCE):
            yield exchange_id, wanted[start : start + SYMBOLS_AT_ONCE]


def expected_of(
    series: Series,
    jobs: Mapping[tuple[str, str], AskedFor],
    market: Document | None,
    now_ms: int,
) -> Expected:
    """A timeframe that is made of shorter ones begins where those do, and is silent with them."""
    exchange_id, frame = series.exchange_id, series.timeframe
    own = [
        asked
        for (symbol, name), asked in jobs.items()
        if symbol == series.symbol and divides(Timeframe.parse(name).at(exchange_id), frame)
    ]
    silences = [each for asked in own for each in asked.silences if is_unconfirmed(each, now_ms)]
    from_ms = _from_ms(own, (market or {}).get("listed_ms"))
    return replace(_range(own, market, from_ms, now_ms), unconfirmed=tuple(silences))


def _range(
    own: Sequence[AskedFor], market: Document | None, from_ms: int | None, now_ms: int
) -> Expected:
    if market is None or market["active"]:
        return Expected.by_now(now_ms, from_ms)
    gone_ms = market.get("delisted_at")
    if gone_ms is None or any(asked.is_ended for asked in own):
        return Expected(from_ms, None, is_listed=False)
    return Expected(from_ms, min(gone_ms, now_ms - LATE_MS), is_listed=False)


def _from_ms(asked: Sequence[AskedFor], listed_ms: int | None) -> int | None:
    begun = [each.begun_ms for each in asked if each.begun_ms is not None]
    # Its first bar was not searched for yet: it cannot be before the listing.
    since = [max(each.since_ms, listed_ms or 0) for each in asked if each.since_ms is not None]
    return min((ms for ms in (*begun, *since) if ms), default=None)
