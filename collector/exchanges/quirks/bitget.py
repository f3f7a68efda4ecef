"""Bitget, v2."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

_DAY_MS = 86_400_000

BITGET = Quirks(
    exchange_id="bitget",
    requests=VenueWindow("requests", 20, 1_000),
    # Recent bars come by the thousand, but older ones, which is nearly all, by 200; and of a
    # larger page ccxt would ask for the last 200 only.
    largest_page=200,
    default_page=200,
    longest_window_ms=90 * _DAY_MS,
    keeps_newest=True,
    turnover={"spot": 7, "linear": 6},
    lists={
        "v2/spot/market/candles": ("data",),
        "v2/spot/market/history-candles": ("data",),
        "v2/mix/market/candles": ("data",),
        "v2/mix/market/history-candles": ("data",),
        "v2/spot/public/symbols": ("data",),
        "v2/mix/market/contracts": ("data",),
    },
    bans=(BANNED_BY_CLOUDFLARE,),
    market_options={"types": ["spot", "swap"]},
)
