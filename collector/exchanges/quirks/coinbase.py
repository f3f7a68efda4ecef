"""Coinbase, Advanced Trade, public market data."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

COINBASE = Quirks(
    exchange_id="coinbase",
    # Public endpoints, by address. ccxt counts as for requests with a key: 30.
    requests=VenueWindow("requests", 10, 1_000),
    largest_page=300,
    default_page=300,
    newest_first=True,
    lists={
        "brokerage/market/products/{product_id}/candles": ("candles",),
        "brokerage/market/products": ("products",),
    },
    bans=(BANNED_BY_CLOUDFLARE,),
    refusals=("valid product_id is required",),
)
