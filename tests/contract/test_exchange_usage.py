"""Weights in the venue's own units, and corrected by what its answers say it has counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collector.clock import ManualClock, SystemClock
from collector.connectors.limiter import Limiter
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.errors import RateLimited
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.registry import quirks_for
from tests.support.ccxt_venue import (
    FIRST_BAR_MS,
    MINUTE,
    Venue,
    load_quietly,
    opened,
    says,
    serving,
)
from tests.support.dialects import DIALECTS, Dialect

if TYPE_CHECKING:
    from collector.mongo.client import Database

WEIGHTS = {
    "binance": 2,
    "binanceusdm": 10,
    "binancecoinm": 5,
    "bitfinex": 3,
    "hyperliquid": 104,
    "kucoin": 3,
    "kucoinfutures": 3,
    "myokx": 2,
    "okx": 2,
    "okxus": 2,
}
COUNTED = {
    "binance": ("X-MBX-USED-WEIGHT-1M", "5999", 5_999),
    "kucoin": ("gw-ratelimit-remaining", "1", 1_999),
    "gate": ("X-Gate-RateLimit-Requests-Remain", "0", 200),
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
async def test_a_page_weighs_what_the_venue_counts(dialect: Dialect) -> None:
    async with opened(dialect.exchange_id, clock=ManualClock(FIRST_BAR_MS)) as desk:
        await desk.exchange.fetch_bars(dialect.symbol, MINUTE, FIRST_BAR_MS, 50_000)
        expected = WEIGHTS.get(dialect.exchange_id, 1)
        assert [call.weight for call in desk.permit.granted] == [expected]


@pytest.mark.parametrize(("limit", "weight"), [(99, 1), (499, 2), (1000, 5), (1500, 10)])
async def test_a_page_of_usd_m_futures_weighs_by_its_size(limit: int, weight: int) -> None:
    """Up to 1500 bars, where ccxt would ask for 1000 at most."""
    async with opened("binanceusdm", clock=ManualClock(FIRST_BAR_MS)) as desk:
        await desk.exchange.fetch_bars("BTC/USDT:USDT", MINUTE, FIRST_BAR_MS, limit)
        assert [request.query["limit"] for request in desk.venue.requests] == [str(limit)]
        assert [call.weight for call in desk.permit.granted] == [weight]


@pytest.mark.parametrize("exchange_id", DIALECTS)
async def test_a_connector_starts_with_the_venues_limits(
    exchange_id: str, database: Database
) -> None:
    quirks = quirks_for(exchange_id)
    connector = await ConnectorRegistry(database).ensure(exchange_id, venue_limits(exchange_id))
    document = connector[0].document
    assert document["rate_limit"] == quirks.requests.limit
    assert document["rate_limit_period_ms"] == quirks.requests.period_ms


@pytest.mark.parametrize("exchange_id", COUNTED)
async def test_what_the_venue_has_counted_stops_us_before_it_does(
    exchange_id: str, database: Database
) -> None:
    """Somebody else spends from the same address: our own count alone would go on."""
    header, text, used = COUNTED[exchange_id]
    dialect, registry = DIALECTS[exchange_id], ConnectorRegistry(database)
    await registry.ensure(exchange_id, venue_limits(exchange_id))
    venue = Venue(exchange_id)
    async with serving(venue) as address, Limiter(database) as limiter:
        permit = ConnectorPermit(limiter, registry, quirks_for(exchange_id), patience=0.0)
        exchange = CcxtExchange(
            exchange_id, permit, urls={exchange_id: address}, clock=SystemClock()
        )
        try:
            await load_quietly(exchange, venue, address)
            venue.always = says(200, dialect.page([]), headers={header: text})
            since_ms = MINUTE.floor(SystemClock().wall_ms()) - 100 * MINUTE.ms
            await exchange.fetch_bars(dialect.symbol, MINUTE, since_ms, 100)
            with pytest.raises(RateLimited):
                await exchange.fetch_bars(dialect.symbol, MINUTE, since_ms, 100)
            assert len(venue.requests) == 1
        finally:
            await exchange.close()
    assert (await registry.get(exchange_id)).document["reported_usage"]["used"] == used
