"""Markets as answers show them."""

from typing import Any

from pydantic import Field

from api.schemas.fields import ExchangeId, Limit, Name, QueryFields, SearchText, Symbol, View


class MarketsAsked(QueryFields):
    """Which markets of an exchange."""

    exchange_id: ExchangeId
    base: Name | None = None
    """Only with this base currency"""
    quote: Name | None = None
    """Only with this quote currency"""
    active: bool | None = None
    """Whether it is listed today"""
    search: Name | None = Field(
        default=None,
        description="Only symbols with these letters in them, or like this pattern",
        examples=["BTC", "*/USDT"],
    )
    limit: Limit = 100
    cursor: Symbol | None = Field(default=None, description="`next_cursor` of the page before")


class MarketsSearched(QueryFields):
    """What to look for, and where."""

    search: SearchText = Field(default="", description="Letters of the symbol; `btcusdt` is fine")
    exchange_id: ExchangeId | None = Field(default=None, description="Of this exchange")
    limit: int = Field(default=30, ge=1, le=200, description="How many markets at most")


class Epoch(View):
    """A time during which a market was listed, and which is over. Times are epoch ms."""

    listed: int | None
    """When it began"""
    delisted: int
    """When it ended"""


class MarketView(View):
    """One market of an exchange. Times are epoch ms."""

    exchange_id: str
    """The exchange"""
    symbol: str
    """As ccxt writes it"""
    base: str
    """The currency that is traded"""
    quote: str
    """The currency of the price"""
    kind: str
    """spot, swap, future or option"""
    active: bool
    """Whether it is listed today"""
    timeframes: list[str]
    """The lengths of bars that the exchange serves"""
    listed_ms: int | None
    """Since when it is listed, as far as the exchange tells"""
    delisted_at: int | None
    """When it was first missing from the list"""
    first_seen_at: int | None
    """When it was first in the list"""
    seen_at: int | None
    """When it was last in the list"""
    relisted_ms: int | None
    """Of a market that came back: since when it is listed again"""
    epochs: list[Epoch]
    """When it was listed before"""
    renamed_to: str | None
    """Its symbol today"""
    renamed_from: str | None
    """Its symbol before"""
    limits: dict[str, Any]
    """As ccxt describes them"""
    precision: dict[str, Any]
    """As ccxt describes it"""


class MarketPage(View):
    items: list[MarketView]
    """By symbol"""
    next_cursor: str | None
    """`cursor` of the next page; null on the last"""
