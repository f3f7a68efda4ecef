"""Makes a page of the trades ccxt parsed, and says which stretch of time the page settles.

An answer is believed whole or not at all: one trade without a time, a price or a size makes it a
broken one, for nobody could tell later that a day lacks it. A full answer speaks up to its last
trade and no further. A venue that gives only its newest trades speaks from its first one on.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt_errors import http_date_ms
from collector.exchanges.ccxt_page import holds_empty
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.exchanges.port import TradePage
from collector.market.trade import Trade

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.exchanges.ccxt_visit import Visit
    from collector.exchanges.quirks import Quirks

LIVE_EDGE_MS = 10_000
"""Trades this young may be told late: the stretch stays open and is asked for once more."""
_CLOCKS_APART_MS = 60_000


def trades_of(
    parsed: Any, visit: Visit, quirks: Quirks, *, since_ms: int, now_ms: int
) -> TradePage:
    """The page that an answer holds. Raises ExchangeUnavailable when the answer is broken.

    `now_ms` is our own clock, for answers that carry none.
    """
    errand = visit.last
    if errand is None or errand.reply is None:
        raise ExchangeUnavailable(f"{quirks.exchange_id}: no answer to a request for trades")
    if not parsed and not holds_empty(errand.json, visit.raw_rows):
        raise ExchangeUnavailable(
            f"{quirks.exchange_id}: the answer holds no trades and no empty list"
        )
    server_ms = http_date_ms(errand.reply.headers.get("date", ""))
    now_ms = now_ms if server_ms is None else server_ms
    told = sorted(
        (_trade(each, quirks.exchange_id, now_ms) for each in parsed), key=lambda each: each.ts
    )
    asked = [each for each in told if each.ts >= since_ms]
    settled_ms = now_ms - LIVE_EDGE_MS
    # Counted as it came: ccxt may have dropped what lies before the moment that was asked for.
    count = len(visit.raw_rows) if isinstance(visit.raw_rows, list) else len(told)
    from_ms, end_ms = since_ms, settled_ms
    if quirks.trades_page is None:
        from_ms = max(since_ms, told[0].ts) if told else since_ms
    elif count >= quirks.trades_page:
        end_ms = _last_told(asked, since_ms)
    return TradePage(
        trades=tuple(asked),
        from_ms=from_ms,
        to_ms=max(from_ms, min(end_ms, settled_ms)),
        is_latest=end_ms >= settled_ms,
    )


def _last_told(asked: Sequence[Trade], since_ms: int) -> int:
    """Up to the last trade; its own millisecond may hold more, unless nothing else was told."""
    last_ms = asked[-1].ts if asked else since_ms
    return last_ms if last_ms > since_ms else since_ms + 1


def _trade(parsed: Any, exchange_id: str, now_ms: int) -> Trade:
    ts, price, amount = (parsed.get(name) for name in ("timestamp", "price", "amount"))
    if not (_is_time(ts, now_ms) and _is_number(price) and _is_number(amount)):
        raise ExchangeUnavailable(f"{exchange_id}: a trade without its time, price or size")
    side = parsed.get("side")
    # A venue without ids: what is equal in everything counts once.
    own_id = parsed.get("id") or f"{ts}-{price}-{amount}-{side or ''}"
    return Trade(str(own_id), int(ts), float(price), float(amount), side)


def _is_time(ts: Any, now_ms: int) -> bool:
    return isinstance(ts, int) and BEFORE_ALL_MARKETS_MS <= ts <= now_ms + _CLOCKS_APART_MS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
