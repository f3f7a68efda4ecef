"""Kraken, spot."""

from __future__ import annotations

from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import BanRule, Quirks, VenueWindow

KRAKEN = Quirks(
    exchange_id="kraken",
    # Public calls are counted by address: one a second is always within the limit.
    requests=VenueWindow("requests", 1, 1_000),
    largest_page=720,
    default_page=720,
    # Whatever is asked for, the answer is the latest 720 bars or fewer. Deeper history is in
    # trades only.
    oldest_bars=720,
    keeps_newest=True,
    trades_page=1000,
    bans=(
        BanRule(status=200, phrase="egeneral:temporary lockout", wait_ms=900_000),
        BANNED_BY_CLOUDFLARE,
    ),
    refusals=("equery:unknown asset pair",),
)
