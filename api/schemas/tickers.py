"""Tickers as answers show them."""

from typing import Annotated

from pydantic import Field, StringConstraints

from api.schemas.fields import ExchangeId, Limit, QueryFields, Symbol, View


class TickersAsked(QueryFields):
    """Which tickers; all of them by default."""

    exchange_id: ExchangeId | None = None
    symbol: Symbol | None = None
    limit: Limit = 100
    cursor: Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="`next_cursor` of the page before"
    )


class TickerView(View):
    """What an exchange last reported of one market. Times are epoch ms."""

    exchange_id: str
    """The exchange"""
    symbol: str
    """The market"""
    last: float | None
    """The price of the last trade"""
    bid: float | None
    """The best offer to buy"""
    ask: float | None
    """The best offer to sell"""
    volume: float | None
    """Of a day, in the base currency"""
    ts: int
    """The exchange's time, or else when it answered"""
    seen_at: int
    """When it was stored"""


class TickerPage(View):
    items: list[TickerView]
    """By exchange and symbol"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
