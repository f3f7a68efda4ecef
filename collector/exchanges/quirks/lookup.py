"""Which quirks an exchange has."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

from collector.exchanges.quirks.binance import BINANCE, BINANCECOINM, BINANCEUSDM, SIMULATED
from collector.exchanges.quirks.bybit import BYBIT
from collector.exchanges.quirks.pages import PAGE_RULES, PageRule
from collector.exchanges.quirks.record import Quirks, VenueWindow

_WRITTEN_DOWN = {
    quirks.exchange_id: quirks for quirks in (BINANCE, BINANCEUSDM, BINANCECOINM, BYBIT, SIMULATED)
}
_SECOND_MS = 1_000
_MODEST_PAGE = 100


def quirks_for(exchange_id: str) -> Quirks:
    """The exchange's quirks. Raises ConfigError when there is no such exchange."""
    written = _WRITTEN_DOWN.get(exchange_id)
    return written if written is not None else _derived(exchange_id)


@cache
def _derived(exchange_id: str) -> Quirks:
    from collector.exchanges.ccxt_catalog import ccxt_class

    venue = ccxt_class(exchange_id)()
    rule = PAGE_RULES.get(exchange_id) or PageRule(_largest_page(venue.features))
    return Quirks(
        exchange_id=exchange_id,
        requests=request_window(float(venue.rateLimit)),
        largest_page=rule.largest_page,
        default_page=rule.largest_page,
        oldest_bars=rule.oldest_bars,
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
