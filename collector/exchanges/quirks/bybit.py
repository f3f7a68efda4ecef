"""Bybit, v5."""

from __future__ import annotations

from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

BYBIT = Quirks(
    exchange_id="bybit",
    requests=VenueWindow("requests", 600, 5_000),
    weights={"v5/market/kline": Cost(1)},
    largest_page=1000,
    default_page=1000,
    newest_first=True,
    # An inverse contract is one dollar: its count of contracts is the turnover.
    turnover={"spot": 6, "linear": 6, "inverse": 5},
    lists={
        "v5/market/kline": ("result", "list"),
        "v5/market/instruments-info": ("result", "list"),
    },
    bans=(BanRule(status=403, phrase="access too frequent", wait_ms=600_000),),
    # Options have no bars, and asking for them costs six requests.
    market_options={"types": ["spot", "linear", "inverse"]},
)
