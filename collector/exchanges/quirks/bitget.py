"""Bitget, v2."""

from __future__ import annotations

from collector.durations import DAY_MS
from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

BITGET = Quirks(
    exchange_id="bitget",
    requests=VenueWindow("requests", 20, 1_000),
    # Recent bars come by the thousand, but older ones, which is nearly all, by 200; for a larger
    # page ccxt would request only the last 200.
    largest_page=200,
    default_page=200,
    longest_window_ms=90 * DAY_MS,
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
    refusals=("does not exist", "symbol has been removed"),
    market_options={"types": ["spot", "swap"]},
)
