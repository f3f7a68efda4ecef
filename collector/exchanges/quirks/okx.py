"""OKX, v5."""

from __future__ import annotations

from dataclasses import replace

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_PERIOD_MS = 2_000
# Each endpoint has a limit of its own, by address. Counted together, in fortieths of the widest:
# recent candles 40 in two seconds, older ones and instruments 20, the clock 10.
_WEIGHT = VenueWindow("weight", 40, _PERIOD_MS)

OKX = Quirks(
    exchange_id="okx",
    requests=VenueWindow("requests", 40, _PERIOD_MS),
    windows=(_WEIGHT,),
    weights={
        "market/candles": Cost(1),
        "market/history-candles": Cost(2),
        "public/instruments": Cost(2),
        "public/time": Cost(4),
    },
    largest_page=300,
    default_page=300,
    newest_first=True,
    turnover={"spot": 7, "linear": 7, "inverse": 7},
    lists={
        "market/candles": ("data",),
        "market/history-candles": ("data",),
        "public/instruments": ("data",),
    },
    bans=(BanRule(status=429, phrase="50011", wait_ms=_PERIOD_MS), BANNED_BY_CLOUDFLARE),
    # Options have no bars worth keeping, and requesting them costs two requests.
    market_options={"types": ["spot", "swap", "future"]},
)

OKXUS = replace(OKX, exchange_id="okxus", market_options={"types": ["spot"]})
MYOKX = replace(OKX, exchange_id="myokx", market_options={"types": ["spot", "swap"]})
