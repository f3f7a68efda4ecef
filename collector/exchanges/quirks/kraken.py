"""Kraken, spot."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import BanRule, Quirks, VenueWindow

KRAKEN = Quirks(
    exchange_id="kraken",
    # Public calls are counted by address: one a second is always within the limit.
    requests=VenueWindow("requests", 1, 1_000),
    largest_page=720,
    default_page=720,
    # Every answer has the latest 720 bars or fewer, whatever the request. Deeper history is in
    # trades only.
    oldest_bars=720,
    trades_page=1000,
    # With seconds, as ccxt would request, a second with more than a page of trades never ends.
    trades_since="since",
    trades_since_ns=True,
    bans=(
        BanRule(status=200, phrase="egeneral:temporary lockout", wait_ms=900_000),
        BANNED_BY_CLOUDFLARE,
    ),
    elsewhere={"linear": "krakenfutures", "inverse": "krakenfutures"},
    refusals=("equery:unknown asset pair",),
)
