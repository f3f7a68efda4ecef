"""MEXC: spot, v3, and contracts."""

from __future__ import annotations

from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

# Spot: 500 in ten seconds for each endpoint. Contracts: 20 in two seconds for candles. Counted
# together, in hundredths of two seconds.
_WEIGHT = VenueWindow("weight", 100, 2_000)

MEXC = Quirks(
    exchange_id="mexc",
    requests=VenueWindow("requests", 500, 10_000),
    windows=(_WEIGHT,),
    weights={
        "klines": Cost(1),
        "exchangeInfo": Cost(10),
        "time": Cost(1),
        "kline/{symbol}": Cost(5),
        "detail": Cost(50),
    },
    # Documented as 1000; 500 come.
    largest_page=500,
    default_page=500,
    # Contracts are requested from a start to now, and a cut answer may be the newest part.
    turnover={"spot": 7},
    counts_contracts=True,
    lists={"klines": (), "exchangeInfo": ("symbols",), "kline/{symbol}": ("data", "time")},
    # The web application firewall.
    bans=(BanRule(status=403, phrase="", wait_ms=300_000),),
)
