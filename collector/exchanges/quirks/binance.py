"""Binance: spot, USD-M and COIN-M futures, and the simulated exchange that speaks spot's format.

Figures are Binance's own, from its REST documentation and `exchangeInfo`. The requests window of
the futures is their weight window: every request weighs at least 1 and no other limit is stated.
"""

from __future__ import annotations

from dataclasses import replace

from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_SPOT_WEIGHT = VenueWindow("weight", 6_000, _MINUTE_MS)
_FUTURES_WEIGHT = VenueWindow("weight", 2_400, _MINUTE_MS)
# A 403 is the web application firewall; Binance says it usually holds for five minutes.
_FIREWALL = BanRule(status=403, phrase="", wait_ms=5 * _MINUTE_MS)

BINANCE = Quirks(
    exchange_id="binance",
    requests=VenueWindow("requests", 61_000, 5 * _MINUTE_MS),
    windows=(_SPOT_WEIGHT,),
    weights={
        "klines": Cost(2),
        "exchangeInfo": Cost(20),
        "time": Cost(1),
        "aggTrades": Cost(4),
        "ticker/24hr": Cost(80),
    },
    usage_headers={"x-mbx-used-weight-1m": _SPOT_WEIGHT},
    largest_page=1000,
    default_page=1000,
    since_zero_gives_first=True,
    turnover={"spot": 7},
    trades_page=1000,
    # With an end beside the start, of a full window the newest trades were sent.
    trades_since="startTime",
    lists={
        "klines": (),
        "exchangeInfo": ("symbols",),
        "aggTrades": (),
        "ticker/24hr": (),
    },
    bans=(_FIREWALL,),
    banned_until=r"banned until (\d{13})",
    market_options={"types": ["spot"]},
)

BINANCEUSDM = replace(
    BINANCE,
    exchange_id="binanceusdm",
    requests=VenueWindow("requests", _FUTURES_WEIGHT.limit, _FUTURES_WEIGHT.period_ms),
    windows=(_FUTURES_WEIGHT,),
    weights={
        # A request that names no limit is given 500 rows.
        "klines": Cost(5, tiers=((1, 1), (100, 2), (500, 5), (1001, 10))),
        "exchangeInfo": Cost(1),
        "time": Cost(1),
        "aggTrades": Cost(20),
        "ticker/24hr": Cost(40),
    },
    usage_headers={"x-mbx-used-weight-1m": _FUTURES_WEIGHT},
    # 499 rows for a weight of 2 are a quarter more bars a minute than 1000 rows for 5.
    default_page=499,
    # Nothing is written about a start without an end.
    trades_page=None,
    trades_since=None,
    turnover={"linear": 7},
    market_options={"types": ["linear"]},
)

BINANCECOINM = replace(
    BINANCEUSDM,
    exchange_id="binancecoinm",
    # An open-ended request is answered with the rows nearest its end, not its start.
    since_zero_gives_first=False,
    longest_window_ms=200 * _DAY_MS,
    # Column 7 is the volume in the base coin, and no column is in the quote currency.
    turnover={},
    market_options={"types": ["inverse"]},
)

SIMULATED = replace(BINANCE, exchange_id="simulated")
