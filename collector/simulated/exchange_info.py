"""The list of markets as Binance publishes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.simulated.listing import SimulatedMarket

_RATE_LIMITS = [
    {
        "rateLimitType": "REQUEST_WEIGHT",
        "interval": "MINUTE",
        "intervalNum": 1,
        "limit": 6000,
    },
    {
        "rateLimitType": "RAW_REQUESTS",
        "interval": "MINUTE",
        "intervalNum": 5,
        "limit": 61000,
    },
]


class ExchangeInfo:
    """Answers /api/v3/exchangeInfo. Ten thousand markets are written once and then kept."""

    def __init__(self, listings: Iterable[SimulatedMarket]) -> None:
        self._listings = tuple(listings)
        self._moments = sorted({moment for each in self._listings for moment in each.moments})
        self._text = b""
        self._fresh = range(0)

    def body(self, now_ms: int, venue_ids: frozenset[str] | None = None) -> bytes:
        """Every market listed by now, or those of them that were named."""
        head = orjson.dumps(
            {
                "timezone": "UTC",
                "serverTime": now_ms,
                "rateLimits": _RATE_LIMITS,
                "exchangeFilters": [],
            }
        )
        return head[:-1] + b',"symbols":' + self._symbols(now_ms, venue_ids) + b"}"

    def _symbols(self, now_ms: int, venue_ids: frozenset[str] | None) -> bytes:
        listed = (
            each for each in self._listings if each.listed_ms <= now_ms and not each.gone(now_ms)
        )
        if venue_ids is not None:
            return orjson.dumps([market(one, now_ms) for one in listed if one.id in venue_ids])
        if now_ms not in self._fresh:
            self._text = orjson.dumps([market(listing, now_ms) for listing in listed])
            before = [moment for moment in self._moments if moment <= now_ms]
            after = [moment for moment in self._moments if moment > now_ms]
            self._fresh = range(max(before, default=0), min(after, default=2**63))
        return self._text


def market(listing: SimulatedMarket, now_ms: int) -> dict[str, Any]:
    """One entry of `symbols`."""
    tick, lot = (f"{10**-digits:.8f}" for digits in (listing.price_digits, listing.volume_digits))
    return {
        "symbol": listing.id,
        "status": "TRADING" if listing.trading(now_ms) else "BREAK",
        "baseAsset": listing.base,
        "baseAssetPrecision": 8,
        "quoteAsset": listing.quote,
        "quotePrecision": 8,
        "quoteAssetPrecision": 8,
        "baseCommissionPrecision": 8,
        "quoteCommissionPrecision": 8,
        "orderTypes": ["LIMIT", "MARKET"],
        "isSpotTradingAllowed": True,
        "isMarginTradingAllowed": False,
        "filters": [
            {
                "filterType": "PRICE_FILTER",
                "minPrice": tick,
                "maxPrice": "1000000.00000000",
                "tickSize": tick,
            },
            {
                "filterType": "LOT_SIZE",
                "minQty": lot,
                "maxQty": "9000000.00000000",
                "stepSize": lot,
            },
            {"filterType": "NOTIONAL", "minNotional": "5.00000000", "maxNotional": "9000000.0"},
        ],
        "permissions": [],
        "permissionSets": [["SPOT"]],
    }
