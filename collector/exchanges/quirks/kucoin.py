"""KuCoin, spot. Its futures are an exchange of their own, `kucoinfutures`."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_PERIOD_MS = 30_000
_PUBLIC_POOL = VenueWindow("weight", 2_000, _PERIOD_MS)

KUCOIN = Quirks(
    exchange_id="kucoin",
    requests=VenueWindow("requests", _PUBLIC_POOL.limit, _PERIOD_MS),
    windows=(_PUBLIC_POOL,),
    weights={
        "market/candles": Cost(3),
        "symbols": Cost(4),
        "currencies": Cost(3),
        "timestamp": Cost(3),
    },
    remaining_headers={"gw-ratelimit-remaining": _PUBLIC_POOL},
    largest_page=1500,
    default_page=1500,
    newest_first=True,
    keeps_newest=True,
    turnover={"spot": 6},
    lists={"market/candles": ("data",), "symbols": ("data",)},
    bans=(
        # The pool fills again when its period ends.
        BanRule(status=429, phrase="429000", wait_ms=_PERIOD_MS),
        BanRule(status=403, phrase="exceeded the access frequency", wait_ms=300_000),
        BANNED_BY_CLOUDFLARE,
    ),
    # Fees come from all tickers, a weight of 15, and nobody here looks at them.
    market_options={"types": ["spot"], "fetchTickersFees": False},
)
