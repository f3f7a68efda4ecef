"""Bitfinex, v2."""

from __future__ import annotations

from collector.durations import MINUTE_MS
from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_WEIGHT = VenueWindow("weight", 90, MINUTE_MS)
_CANDLES = "candles/trade:{timeframe}:{symbol}/hist"
_TRADES = "trades/{symbol}/hist"

BITFINEX = Quirks(
    exchange_id="bitfinex",
    # A limit for each endpoint: candles 30 a minute, trades 15, configuration 90. Counted together,
    # in ninetieths of a minute.
    requests=VenueWindow("requests", 90, MINUTE_MS),
    windows=(_WEIGHT,),
    weights={_CANDLES: Cost(3), _TRADES: Cost(6), "conf/{config}": Cost(1)},
    largest_page=10_000,
    default_page=10_000,
    counts_rows=True,
    trades_page=10_000,
    lists={_CANDLES: (), _TRADES: (), "conf/{config}": ()},
    bans=(
        BanRule(status=429, phrase="err_rate_limit", wait_ms=MINUTE_MS),
        BanRule(status=None, phrase='["error",11010', wait_ms=MINUTE_MS),
    ),
    # It comes with a 500.
    refusals=("symbol: invalid",),
)
