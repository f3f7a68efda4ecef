"""Any exchange that ccxt knows, with one made-up market, at a local venue that says anything."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.clock import ManualClock
from collector.exchanges.ccxt.catalog import ccxt_class
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.port import Market, Markets
from tests.support.ccxt_venue import FIRST_BAR_MS, MINUTE, Desk, NotedPermit, Venue, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NOW_MS = FIRST_BAR_MS + 10_000 * MINUTE.ms + 17_000
SPOT_MARKET: dict[str, Any] = {
    "id": "BTCUSDT",
    "id2": "BTCUSDT",
    "lowercaseId": "btcusdt",
    "symbol": "BTC/USDT",
    "base": "BTC",
    "quote": "USDT",
    "baseId": "BTC",
    "quoteId": "USDT",
    "type": "spot",
    "spot": True,
    "swap": False,
    "future": False,
    "option": False,
    "contract": False,
    "active": True,
    "settle": None,
    "info": {},
    "precision": {"price": 0.01, "amount": 0.0001},
}
SWAP_MARKET: dict[str, Any] = {
    **SPOT_MARKET,
    "symbol": "BTC/USDT:USDT",
    "type": "swap",
    "spot": False,
    "swap": True,
    "contract": True,
    "linear": True,
    "inverse": False,
    "settle": "USDT",
    "settleId": "USDT",
    "contractSize": 1.0,
}


def made_up(market: dict[str, Any]) -> Market:
    return Market(
        symbol=market["symbol"],
        venue_id=market["id"],
        base=market["base"],
        quote=market["quote"],
        kind=market["type"],
        raw=market,
    )


@asynccontextmanager
async def any_exchange(
    exchange_id: str, market: dict[str, Any] | None = None
) -> AsyncIterator[Desk]:
    """Its adapter, the one market known, and a venue that answers what `always` says."""
    venue, permit = Venue(exchange_id), NotedPermit()
    async with serving(venue) as address:
        exchange = CcxtExchange(
            exchange_id, permit, urls={exchange_id: address}, clock=ManualClock(NOW_MS)
        )
        served = tuple(ccxt_class(exchange_id)().timeframes or {})
        known = (made_up(market or SPOT_MARKET),)
        try:
            exchange.restore_markets(Markets(exchange_id, known, served))
            yield Desk(venue, exchange, permit, address)
        finally:
            await exchange.close()
