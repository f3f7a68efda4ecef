"""Ranges of stored rows as requests ask for them."""

from pydantic import Field

from api.row_formats import Format
from api.schemas.fields import Asked, ExchangeId, Moment, Symbol


class RangeAsked(Asked):
    """The range `[start, end)` of one symbol; either end may be left out."""

    exchange_id: ExchangeId
    symbol: Symbol
    start: Moment | None = Field(default=None, description="From here on; default: the first")
    end: Moment | None = Field(
        default=None,
        description="Up to here, which is not included; default: all",
        examples=["2025-02-01T00:00:00Z", 1738368000000],
    )
    format: Format = "json"
