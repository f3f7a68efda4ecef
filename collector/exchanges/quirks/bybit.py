"""Bybit, v5."""

from __future__ import annotations

from dataclasses import replace

from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_PERIOD_MS = 5_000

BYBIT = Quirks(
    exchange_id="bybit",
    requests=VenueWindow("requests", 600, _PERIOD_MS),
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
    bans=(
        BanRule(status=403, phrase="access too frequent", wait_ms=600_000),
        # "System level frequency protection", by a code that ccxt does not know.
        BanRule(status=None, phrase='"retcode":10429', wait_ms=_PERIOD_MS),
    ),
    # Options have no bars, and requesting them costs six requests.
    market_options={"types": ["spot", "linear", "inverse"]},
)

BYBITEU = replace(BYBIT, exchange_id="bybiteu", market_options={"types": ["spot"]})
