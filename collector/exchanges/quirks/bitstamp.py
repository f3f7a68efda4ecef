"""Bitstamp."""

from __future__ import annotations

from collector.exchanges.quirks.record import BanRule, Quirks, VenueWindow

_TEN_MINUTES_MS = 600_000

BITSTAMP = Quirks(
    exchange_id="bitstamp",
    requests=VenueWindow("requests", 10_000, _TEN_MINUTES_MS),
    windows=(VenueWindow("requests", 400, 1_000),),
    largest_page=1000,
    default_page=1000,
    lists={"ohlc/{pair}/": ("data", "ohlc"), "markets/": ()},
    bans=(BanRule(status=400, phrase="400.002", wait_ms=_TEN_MINUTES_MS),),
    refusals=("currency pair not found",),
)
