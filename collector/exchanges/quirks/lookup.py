"""Which quirks an exchange has."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from collector.exchanges.quirks.binance import BINANCE, BINANCECOINM, BINANCEUSDM, SIMULATED
from collector.exchanges.quirks.bitfinex import BITFINEX
from collector.exchanges.quirks.bitget import BITGET
from collector.exchanges.quirks.bitstamp import BITSTAMP
from collector.exchanges.quirks.bybit import BYBIT
from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.coinbase import COINBASE
from collector.exchanges.quirks.gate import GATE
from collector.exchanges.quirks.htx import HTX
from collector.exchanges.quirks.kraken import KRAKEN
from collector.exchanges.quirks.kucoin import KUCOIN
from collector.exchanges.quirks.mexc import MEXC
from collector.exchanges.quirks.okx import OKX
from collector.exchanges.quirks.record import Quirks, VenueWindow

_RECORDS = (
    BINANCE,
    BINANCEUSDM,
    BINANCECOINM,
    BITFINEX,
    BITGET,
    BITSTAMP,
    BYBIT,
    COINBASE,
    GATE,
    HTX,
    KRAKEN,
    KUCOIN,
    MEXC,
    OKX,
    SIMULATED,
)
WRITTEN_DOWN = {quirks.exchange_id: quirks for quirks in _RECORDS}
"""The exchanges that have a record, which the contract suite holds each to."""
_SECOND_MS = 1_000
_MODEST_PAGE = 100


def quirks_for(exchange_id: str) -> Quirks:
    """The exchange's quirks. Raises ConfigError when there is no such exchange."""
    written = WRITTEN_DOWN.get(exchange_id)
    return written if written is not None else _derived(exchange_id)


@cache
def _derived(exchange_id: str) -> Quirks:
    from collector.exchanges.ccxt_catalog import ccxt_class

    venue = ccxt_class(exchange_id)()
    page = _largest_page(venue.features)
    return Quirks(
        exchange_id=exchange_id,
        requests=request_window(float(venue.rateLimit)),
        largest_page=page,
        default_page=page,
        bans=(BANNED_BY_CLOUDFLARE,),
        written=False,
    )


def request_window(between_ms: float) -> VenueWindow:
    """As many whole requests as fit in a second at one every `between_ms`."""
    if between_ms > _SECOND_MS:
        return VenueWindow("requests", 1, math.ceil(between_ms))
    return VenueWindow("requests", max(1, int(_SECOND_MS / between_ms)), _SECOND_MS)


def _largest_page(features: Any) -> int:
    """The smallest page limit that ccxt states for any kind of market."""
    limits = list(_page_limits(features))
    return min(limits) if limits else _MODEST_PAGE


def _page_limits(features: Any) -> list[int]:
    if not isinstance(features, dict):
        return []
    bars = features.get("fetchOHLCV")
    limit = bars.get("limit") if isinstance(bars, dict) else None
    nested = [found for value in features.values() for found in _page_limits(value)]
    return [limit, *nested] if isinstance(limit, int) else nested
