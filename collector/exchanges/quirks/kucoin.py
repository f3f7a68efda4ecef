"""KuCoin: spot, and its futures, which are an exchange of their own, `kucoinfutures`.

Both are counted in one public pool by address.
"""

from __future__ import annotations

from dataclasses import replace

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
    turnover={"spot": 6},
    lists={"market/candles": ("data",), "symbols": ("data",)},
    bans=(
        # The pool fills again when its period ends.
        BanRule(status=429, phrase="429000", wait_ms=_PERIOD_MS),
        BanRule(status=403, phrase="exceeded the access frequency", wait_ms=300_000),
        BANNED_BY_CLOUDFLARE,
    ),
    # Fees come from all tickers, a weight of 15, and are not used here.
    market_options={"types": ["spot"], "fetchTickersFees": False},
    elsewhere={"linear": "kucoinfutures", "inverse": "kucoinfutures"},
)

KUCOINFUTURES = replace(
    KUCOIN,
    exchange_id="kucoinfutures",
    weights={
        "kline/query": Cost(3),
        "contracts/active": Cost(3),
        "currencies": Cost(3),
        "timestamp": Cost(2),
    },
    # The most that ccxt requests; not checked against the venue.
    largest_page=200,
    default_page=200,
    newest_first=False,
    turnover={},
    counts_contracts=True,
    lists={"kline/query": ("data",), "contracts/active": ("data",)},
    market_options={"types": ["swap", "future", "contract"], "fetchTickersFees": False},
    elsewhere={"spot": "kucoin"},
)
