"""Hyperliquid: perpetuals and spot."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Cost, Quirks, VenueWindow

_WEIGHT = VenueWindow("weight", 1_200, 60_000)
_CANDLES = "info candleSnapshot"

HYPERLIQUID = Quirks(
    exchange_id="hyperliquid",
    # By address. Every request weighs something, and no other limit is stated.
    requests=VenueWindow("requests", _WEIGHT.limit, _WEIGHT.period_ms),
    windows=(_WEIGHT,),
    # Candles weigh one more for every 60 of them: a page of 5000 is 104, and eleven go in a minute.
    weights={
        "info": Cost(20),
        _CANDLES: Cost(20, rows=60),
        "info exchangeStatus": Cost(2),
    },
    asks_by="type",
    largest_page=5_000,
    default_page=5_000,
    # Without an end, bars up to now would come, and weigh.
    names_end=True,
    # Only the latest 5000 of each length are kept.
    oldest_bars=5_000,
    lists={_CANDLES: (), "info metaAndAssetCtxs": (), "info spotMetaAndAssetCtxs": ()},
    bans=(BANNED_BY_CLOUDFLARE,),
    refusals=("failed to deserialize",),
)
