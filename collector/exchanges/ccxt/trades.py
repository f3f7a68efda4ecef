"""The trades of an answer, once it proves not to be broken.

An answer is accepted whole or not at all: one trade without a time, a price or a size makes it
broken, because otherwise a day would lack that trade unnoticed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ccxt.async_support.base.exchange import BaseExchange

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.errors import http_date_ms
from collector.exchanges.first_bar import BEFORE_ALL_MARKETS_MS
from collector.market.trade import Trade

if TYPE_CHECKING:
    from collector.exchanges.ccxt.empty import EmptyAnswers
    from collector.exchanges.ccxt.visit import Visit

LIVE_EDGE_MS = 10_000
"""Trades this young may still be added: the range stays open and is requested once more."""
_CLOCKS_APART_MS = 60_000


@dataclass(frozen=True, slots=True)
class TradesAnswer:
    """An answer's trades, oldest first; how many it came with; and the venue's clock."""

    trades: tuple[Trade, ...]
    count: int
    now_ms: int

    @property
    def final_ms(self) -> int:
        """Where trades begin that may still be added."""
        return self.now_ms - LIVE_EDGE_MS


def trades_answer(
    parsed: Any, visit: Visit, empty: EmptyAnswers, exchange_id: str, *, now_ms: int
) -> TradesAnswer:
    """The trades of an answer. Raises ExchangeUnavailable when it is broken.

    `now_ms` is our own clock, for answers that carry none.
    """
    errand = visit.last
    if errand is None or errand.reply is None:
        raise ExchangeUnavailable(f"{exchange_id}: no answer to a request for trades")
    if parsed:
        empty.note_good(errand.call.endpoint, errand.json)
    elif not empty.is_empty(
        errand.call.endpoint, errand.json, visit, anywhere=visit.raw_rows is None
    ):
        raise ExchangeUnavailable(f"{exchange_id}: the answer holds no trades and no empty list")
    server_ms = http_date_ms(errand.reply.headers.get("date", ""))
    now_ms = now_ms if server_ms is None else server_ms
    trades = sorted(
        (_trade(each, exchange_id, now_ms) for each in parsed), key=lambda each: each.ts
    )
    # Counted as it came: ccxt may have dropped trades before the requested time.
    count = len(visit.raw_rows) if isinstance(visit.raw_rows, list) else len(trades)
    return TradesAnswer(tuple(trades), count, now_ms)


def _trade(parsed: Any, exchange_id: str, now_ms: int) -> Trade:
    ts, price, amount = (parsed.get(name) for name in ("timestamp", "price", "amount"))
    if not (_is_time(ts, now_ms) and _is_number(price) and _is_number(amount)):
        raise ExchangeUnavailable(f"{exchange_id}: a trade without its time, price or size")
    side = parsed.get("side")
    # A venue without ids: what is equal in everything counts once.
    own_id = parsed.get("id") or f"{ts}-{price}-{amount}-{side or ''}"
    digits = parsed.get("digits")
    return Trade(str(own_id), int(ts), float(price), float(amount), side, digits)


def _is_time(ts: Any, now_ms: int) -> bool:
    return isinstance(ts, int) and BEFORE_ALL_MARKETS_MS <= ts <= now_ms + _CLOCKS_APART_MS


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


class TradeDigits(BaseExchange):  # type: ignore[misc] # ccxt has no types
    """Stands before an exchange's own class: every trade gets `digits`, or None."""

    def safe_trade(self, trade: Any, market: Any = None) -> Any:
        """The last step that has the texts; after it there are floats."""
        texts = self.safe_string(trade, "price"), self.safe_string(trade, "amount")
        made = super().safe_trade(trade, market)
        made["digits"] = written_digits(trade.get("info"), *texts, market or {})
        return made


def written_digits(row: Any, price: Any, amount: Any, market: Any) -> tuple[str, str] | None:
    """Both texts, the amount in base currency; None unless the venue's row has them as text.

    A venue that sends numbers has lost digits before anyone could keep them. A count of contracts
    is multiplied exactly; that of an inverse contract would have to be divided.
    """
    sent = _texts(row)
    if price not in sent or amount not in sent:
        return None
    if not market.get("contract"):
        return price, amount
    size = market.get("contractSize")
    if market.get("inverse") or not isinstance(size, int | float):
        return None
    return price, format(Decimal(amount) * Decimal(str(size)), "f")


def _texts(row: Any) -> set[str]:
    values = row.values() if isinstance(row, dict) else row if isinstance(row, list) else ()
    return {each for each in values if isinstance(each, str)}
