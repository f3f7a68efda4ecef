"""The quirks of ccxt's exchanges."""

from __future__ import annotations

import math
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from collector.durations import SECOND_MS
from collector.exchanges.quirks.cloudflare import BANNED_BY_CLOUDFLARE
from collector.exchanges.quirks.record import Quirks, VenueWindow


def _records() -> dict[str, Quirks]:
    """Every record in the files beside this one: a venue more is a file more."""
    names = {module.name for module in iter_modules([str(Path(__file__).parent)])}
    modules = [import_module(f"{__package__}.{name}") for name in sorted(names - {"lookup"})]
    found = (each for module in modules for each in vars(module).values())
    return {quirks.exchange_id: quirks for quirks in found if isinstance(quirks, Quirks)}


WRITTEN_DOWN = _records()
"""The exchanges that have a record; the contract suite tests each."""
_LONGEST_PERIOD_MS = 60_000
_MODEST_PAGE = 100


def ccxt_quirks(exchange_id: str) -> Quirks:
    """The quirks of one of ccxt's exchanges. Raises ConfigError when there is no such exchange."""
    written = WRITTEN_DOWN.get(exchange_id)
    return written if written is not None else _derived(exchange_id)


@cache
def _derived(exchange_id: str) -> Quirks:
    from collector.exchanges.ccxt.catalog import ccxt_class

    venue = ccxt_class(exchange_id)()
    page, between_ms = _largest_page(venue.features), float(venue.rateLimit)
    period_ms = _period_ms(between_ms * _heaviest(venue.api))
    return Quirks(
        exchange_id=exchange_id,
        requests=request_window(between_ms),
        windows=(VenueWindow("weight", period_ms, period_ms),),
        cost_ms=between_ms,
        largest_page=page,
        default_page=page,
        bans=(BANNED_BY_CLOUDFLARE,),
        written=False,
    )


def request_window(between_ms: float) -> VenueWindow:
    """As many whole requests as fit in a second at one every `between_ms`."""
    if between_ms > SECOND_MS:
        return VenueWindow("requests", 1, math.ceil(between_ms))
    return VenueWindow("requests", max(1, int(SECOND_MS / between_ms)), SECOND_MS)


def _period_ms(heaviest_ms: float) -> int:
    """A second, or as long as ccxt waits after the costliest request: each has to fit in."""
    return max(SECOND_MS, min(_LONGEST_PERIOD_MS, math.ceil(heaviest_ms)))


def _heaviest(api: Any) -> float:
    """The greatest cost that ccxt states for any public endpoint.

    Costs are at the leaves, some by the size of a page: a list of (size, cost).
    """
    if isinstance(api, dict):
        public = (value for name, value in api.items() if "private" not in str(name).lower())
        return max(map(_heaviest, public), default=0.0)
    if isinstance(api, list):
        pairs = [each for each in api if isinstance(each, list) and len(each) == 2]
        return max((float(cost) for _, cost in pairs), default=0.0)
    return float(api) if isinstance(api, int | float) else 0.0


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
