"""HTX: spot, and contracts."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

HTX = Quirks(
    exchange_id="htx",
    requests=VenueWindow("requests", 10, 1_000),
    largest_page=1000,
    default_page=1000,
    turnover={"spot": "vol", "linear": "trade_turnover"},
    lists={
        "market/history/candles": ("data",),
        "linear-swap-ex/market/history/kline": ("data",),
        "swap-ex/market/history/kline": ("data",),
        "market/history/kline": ("data",),
        "v1/common/symbols": ("data",),
    },
    bans=(BANNED_BY_CLOUDFLARE,),
)
