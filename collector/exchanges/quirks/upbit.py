"""Upbit, spot."""

from __future__ import annotations

from collector.exchanges.quirks.record import Quirks, VenueWindow

_CANDLES = "candles/{timeframe}"
_MINUTES = "candles/{timeframe}/{unit}"

UPBIT = Quirks(
    exchange_id="upbit",
    # By address, for each group of endpoints: candles, markets, trades. Counted together.
    requests=VenueWindow("requests", 10, 1_000),
    largest_page=200,
    default_page=200,
    newest_first=True,
    turnover={"spot": "candle_acc_trade_price"},
    lists={_CANDLES: (), _MINUTES: (), "market/all": (), "trades/ticks": ()},
    refusals=("code not found",),
)
