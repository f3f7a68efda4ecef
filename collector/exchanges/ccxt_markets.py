"""ccxt's markets as Collector's, and what of them is worth keeping.

A market as ccxt holds it carries the venue's whole answer and fees. Kept is what `fetch_ohlcv`
looks at and what a person asks for; `set_markets` fills in the rest with its defaults, so that
markets restored from a database need no request.
"""

from __future__ import annotations

from typing import Any

from collector.exchanges.port import Market, Markets
from collector.market.timeframe import Timeframe

_KEPT = (
    "id",
    "lowercaseId",
    "uppercaseId",
    "numericId",
    "symbol",
    "base",
    "quote",
    "settle",
    "baseId",
    "quoteId",
    "settleId",
    "type",
    "subType",
    "spot",
    "margin",
    "swap",
    "future",
    "option",
    "index",
    "active",
    "contract",
    "linear",
    "inverse",
    "contractSize",
    "expiry",
    "expiryDatetime",
    "strike",
    "optionType",
    "created",
    "precision",
    "limits",
)
_LARGEST_INT = 2**63 - 1


def markets_of(exchange_id: str, ccxt_markets: Any, ccxt_timeframes: Any) -> Markets:
    """What ccxt has loaded, in the order of its symbols."""
    markets = [_market(ccxt_markets[symbol]) for symbol in sorted(ccxt_markets)]
    names = [name for name in (ccxt_timeframes or {}) if _is_timeframe(name)]
    return Markets(exchange_id=exchange_id, markets=tuple(markets), timeframes=tuple(names))


def _market(raw: Any) -> Market:
    created = raw.get("created")
    return Market(
        symbol=raw["symbol"],
        venue_id=str(raw["id"]),
        base=raw.get("base") or "",
        quote=raw.get("quote") or "",
        kind=raw.get("type") or "spot",
        active=raw.get("active") is not False,  # None: the venue does not say
        listed_ms=created if isinstance(created, int) and created > 0 else None,
        raw=_plain({name: raw.get(name) for name in _KEPT}),
    )


def _plain(value: Any) -> Any:
    """Without what is None, and with nothing that JSON or BSON could not hold."""
    if isinstance(value, dict):
        kept = ((str(key), _plain(item)) for key, item in value.items() if item is not None)
        return {key: item for key, item in kept if item != {}}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        return float(value)
    return value if isinstance(value, (str, bool, int, float)) else str(value)


def _is_timeframe(name: str) -> bool:
    try:
        return Timeframe.parse(name).name == name
    except ValueError:
        return False
