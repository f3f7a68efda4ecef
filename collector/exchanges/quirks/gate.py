"""Gate, v4."""

from __future__ import annotations

from dataclasses import replace

from collector.durations import HOUR_MS
from collector.exchanges.quirks.record import BanRule, Quirks, VenueWindow, WindowedTrades

_PERIOD_MS = 10_000
_PUBLIC = VenueWindow("requests", 200, _PERIOD_MS)

GATE = Quirks(
    exchange_id="gate",
    requests=_PUBLIC,
    remaining_headers={"x-gate-ratelimit-requests-remain": _PUBLIC},
    largest_page=1000,
    default_page=1000,
    # It refuses what is older than 10,000 bars. A hundred less, for the time between finding the
    # oldest bar and requesting it.
    oldest_bars=9_900,
    turnover={"spot": 1, "linear": "sum"},
    counts_contracts=True,
    trades_page=1000,
    # It refuses what is older than 30 days. An hour less, for clocks that differ.
    windowed_trades=WindowedTrades("from", "to", "page", kept_ms=(30 * 24 - 1) * HOUR_MS),
    # A contract's trades have no pages.
    trades_of_spot_only=True,
    lists={
        "candlesticks": (),
        "{settle}/candlesticks": (),
        "currency_pairs": (),
        "{settle}/contracts": (),
        "trades": (),
        "{settle}/trades": (),
    },
    bans=(BanRule(status=429, phrase="too_many_requests", wait_ms=_PERIOD_MS),),
    market_options={"types": ["spot", "swap", "future"]},
)

GATEEU = replace(GATE, exchange_id="gateeu", market_options={"types": ["spot"]})
