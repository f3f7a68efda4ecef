"""Trades as Gate returns them: of a window the newest, newest first, by pages, for 30 days.

It is undocumented whether the ends of a window are inclusive, so a tape can take them either way.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tests.support.ccxt_venue import says
from tests.support.dialects import DIALECTS
from tests.support.dialects.dialect import dated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from collector.clock import Clock
    from collector.market.trade import Trade
    from tests.support.ccxt_venue import Turn, Venue

MINUTE_MS = 60_000
KEPT_MS = 30 * 86_400_000
DEEPEST = 100_000
Bar = tuple[float, ...]


class Refused(Exception):
    """The requested range is not served."""


@dataclass(frozen=True)
class Tape:
    """`trades` are oldest first. `leaves_out_ms` of a window's first second are not returned; of
    the second it ends with, `adds_ms` are.
    """

    trades: tuple[Trade, ...]
    leaves_out_ms: int = 0
    adds_ms: int = 1000

    def told(self, query: Mapping[str, Any], now_ms: int) -> list[Trade]:
        """The answer to a request, as a list of its trades. Raises Refused."""
        from_ms = int(query.get("from", (now_ms - KEPT_MS) // 1000 + 1)) * 1000
        if from_ms < now_ms - KEPT_MS:
            raise Refused("for public trades older than 30 days, download from historical data")
        to_ms = int(query["to"]) * 1000 + self.adds_ms if "to" in query else now_ms
        limit, page = int(query.get("limit", 100)), int(query.get("page", 1))
        if limit * (page - 1) > DEEPEST:
            raise Refused("page is too deep")
        inside = self.between(from_ms + self.leaves_out_ms, min(to_ms, now_ms))
        return list(reversed(inside))[limit * (page - 1) : limit * page]

    def between(self, from_ms: int, to_ms: int) -> Sequence[Trade]:
        first, end = (
            bisect_left(self.trades, ms, key=lambda each: each.ts) for ms in (from_ms, to_ms)
        )
        return self.trades[first:end]

    def bars(self, from_ms: int, to_ms: int, bar_ms: int = MINUTE_MS) -> list[Bar]:
        """The bars with trades, as rows of (ts, o, h, l, c, v, t)."""
        inside = self.between(from_ms, to_ms)
        groups = groupby(inside, lambda each: each.ts // bar_ms * bar_ms)
        return [_bar(open_ms, list(trades)) for open_ms, trades in groups]


def _bar(open_ms: int, trades: list[Trade]) -> Bar:
    prices = [trade.price for trade in trades]
    volume = sum(trade.amount for trade in trades)
    turnover = sum(trade.amount * trade.price for trade in trades)
    return (open_ms, prices[0], max(prices), min(prices), prices[-1], volume, turnover)


def row(trade: Trade) -> dict[str, str]:
    """A trade in Gate's words."""
    return {
        "id": trade.id,
        "create_time": str(trade.ts // 1000),
        "create_time_ms": f"{trade.ts}.105000",
        "currency_pair": "BTC_USDT",
        "side": trade.side or "buy",
        "amount": str(trade.amount),
        "price": str(trade.price),
    }


def playing(venue: Venue, tape: Tape, clock: Clock) -> Turn:
    """Markets as recorded, trades and bars from the tape."""

    async def turn(request: web.Request) -> web.StreamResponse:
        now_ms = clock.wall_ms()
        try:
            body = _body(venue, tape, request, now_ms)
        except Refused as refusal:
            error = {"label": "INVALID_PARAM_VALUE", "message": str(refusal)}
            return await says(400, error, headers=dated(now_ms))(request)
        return await says(200, body, headers=dated(now_ms))(request)

    return turn


def _body(venue: Venue, tape: Tape, request: web.Request, now_ms: int) -> Any:
    if request.path.endswith("/spot/trades"):
        return [row(trade) for trade in tape.told(request.query, now_ms)]
    if request.path.endswith("/spot/candlesticks"):
        from_s, to_s = (int(request.query[name]) for name in ("from", "to"))
        return DIALECTS["gate"].page(tape.bars(from_s * 1000, (to_s + 60) * 1000))
    return venue.recorded(request)
