"""HTX, spot.

Its contracts are left out: a request that names a size is answered with the latest bars, whatever
start it names, so that history cannot be paged through ccxt.
"""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

HTX = Quirks(
    exchange_id="htx",
    requests=VenueWindow("requests", 10, 1_000),
    largest_page=1000,
    default_page=1000,
    names_end=True,
    newest_first=True,
    turnover={"spot": "vol"},
    lists={"market/history/candles": ("data",), "v1/common/symbols": ("data",)},
    bans=(BANNED_BY_CLOUDFLARE,),
    market_options={"types": {"spot": True, "linear": False, "inverse": False}},
)
