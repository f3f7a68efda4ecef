"""ccxt's markets as Collector's, reduced to what has to be kept.

A market as ccxt holds it carries the venue's whole answer and fees, which are most of it. All other
fields are kept, because exchanges add their own and build requests and read answers with them. Of
the venue's answer only the few fields are kept that some exchange's requests depend on; a test over
every exchange finds them. `set_markets` fills in fees with its defaults, so that markets restored
from a database need no request.
"""

from __future__ import annotations

from typing import Any

import orjson

from collector import logs
from collector.errors import ExchangeUnavailable
from collector.exchanges.port import Market, Markets
from collector.market.symbol import symbol_to_name
from collector.market.timeframe import Timeframe

_log = logs.get("collector.exchanges")
LARGEST_MARKET = 64 * 1024
"""Bytes of one market that are stored, as JSON; usually some 1,500."""
_LEFT_OUT = frozenset(
    {"info", "taker", "maker", "tiers", "tierBased", "percentage", "feeSide", "marginModes"}
)
_KEPT_OF_INFO = ("marketType", "ticker_id", "type")
_LARGEST_INT = 2**63 - 1


def markets_of(exchange_id: str, ccxt_markets: Any, ccxt_timeframes: Any) -> Markets:
    """What ccxt has loaded, in the order of its symbols.

    Markets that could not be stored are left out: a name of a megabyte is no folder, and one huge
    document would keep MongoDB from storing the others.
    """
    loaded = [_market(ccxt_markets[symbol]) for symbol in sorted(ccxt_markets)]
    markets = [market for market in loaded if _is_storable(market)]
    if len(markets) < len(loaded):
        _log.warning("markets_left_out", exchange=exchange_id, count=len(loaded) - len(markets))
        if not markets:
            raise ExchangeUnavailable(f"{exchange_id} listed no market that can be stored")
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
        active=raw.get("active") is not False,  # None: the venue does not report it
        listed_ms=created if isinstance(created, int) and created > 0 else None,
        raw=_plain(_kept(raw)),
    )


def _is_storable(market: Market) -> bool:
    try:
        symbol_to_name(market.symbol)
    except ValueError:
        return False
    return len(orjson.dumps(market.raw)) <= LARGEST_MARKET


def _kept(raw: Any) -> dict[str, Any]:
    info = raw.get("info")
    of_info = {name: info.get(name) for name in _KEPT_OF_INFO} if isinstance(info, dict) else {}
    return {**{name: raw[name] for name in raw if name not in _LEFT_OUT}, "info": of_info}


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
