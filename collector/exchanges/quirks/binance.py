"""Binance: spot, USD-M and COIN-M futures, Binance US, and the simulated exchange, which speaks
spot's format.

Figures are Binance's own, from its REST documentation and `exchangeInfo`. The requests window of
the futures is their weight window: every request weighs at least 1 and no other limit is stated.
"""

from __future__ import annotations

from dataclasses import replace

from collector.durations import DAY_MS, MINUTE_MS
from collector.exchanges.quirks.record import BanRule, Cost, Quirks, VenueWindow

_SPOT_WEIGHT = VenueWindow("weight", 6_000, MINUTE_MS)
_FUTURES_WEIGHT = VenueWindow("weight", 2_400, MINUTE_MS)
_US_WEIGHT = VenueWindow("weight", 1_200, MINUTE_MS)
# A 403 is the web application firewall; by its documentation it usually holds for five minutes.
_FIREWALL = BanRule(status=403, phrase="", wait_ms=5 * MINUTE_MS)

BINANCE = Quirks(
    exchange_id="binance",
    requests=VenueWindow("requests", 61_000, 5 * MINUTE_MS),
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
    counts_rows=True,
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
    # A halted or delisted market, by a code that ccxt does not know.
    refusals=("invalid symbol status",),
    market_options={"types": ["spot"]},
    elsewhere={"linear": "binanceusdm", "inverse": "binancecoinm"},
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
    largest_page=1500,
    size_name="limit",
    # 499 rows for a weight of 2 are a quarter more bars a minute than 1000 rows for 5, and two
    # thirds more than 1500 rows for 10.
    default_page=499,
    # A start without an end is not documented.
    trades_page=None,
    trades_since=None,
    turnover={"linear": 7},
    market_options={"types": ["linear"]},
    elsewhere={"spot": "binance", "inverse": "binancecoinm"},
)

BINANCECOINM = replace(
    BINANCEUSDM,
    exchange_id="binancecoinm",
    # An open-ended request is answered with the rows nearest its end, not its start.
    counts_rows=False,
    # ccxt names an end as well, of 1000 rows.
    largest_page=1000,
    size_name=None,
    longest_window_ms=200 * DAY_MS,
    # Column 7 is the volume in the base coin, and no column is in the quote currency.
    turnover={},
    market_options={"types": ["inverse"]},
    elsewhere={"spot": "binance", "linear": "binanceusdm"},
)

BINANCEUS = replace(
    BINANCE,
    exchange_id="binanceus",
    requests=VenueWindow("requests", _US_WEIGHT.limit, _US_WEIGHT.period_ms),
    windows=(_US_WEIGHT,),
    weights={
        "klines": Cost(1),
        "exchangeInfo": Cost(10),
        "time": Cost(1),
        "aggTrades": Cost(1),
        "ticker/24hr": Cost(40),
    },
    usage_headers={"x-mbx-used-weight-1m": _US_WEIGHT},
    elsewhere={},
)

SIMULATED = replace(BINANCE, exchange_id="simulated", elsewhere={})
