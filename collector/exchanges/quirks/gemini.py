"""Gemini."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow

_CANDLES = "v2/candles/{symbol}/{timeframe}"

GEMINI = Quirks(
    exchange_id="gemini",
    # 120 a minute, evenly: a burst of more than five is refused. One a second is its advice.
    requests=VenueWindow("requests", 1, 1_000),
    windows=(VenueWindow("requests", 120, 60_000),),
    # A request names neither a start nor a size: a day of minutes comes, newest first.
    largest_page=1440,
    default_page=1440,
    oldest_bars=1440,
    newest_first=True,
    lists={_CANDLES: (), "v1/symbols": ()},
    bans=(BANNED_BY_CLOUDFLARE,),
    refusals=("is not a valid symbol",),
    # ccxt would read them from the web site's own pages.
    currency_options={"webApiEnable": False},
)
