"""Ranges of stored rows in requests."""

import re

from pydantic import Field

from api.row_formats import Format
from api.schemas.fields import ExchangeId, Moment, QueryFields, Symbol


class RangeAsked(QueryFields):
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
    limit: int | None = Field(default=None, ge=1, le=2**31 - 1, description="How many rows at most")
    escape: bool = Field(
        default=False,
        description="csv: an apostrophe before text that a spreadsheet would take for a formula",
    )

    def file_name(self, *more: str) -> str:
        """What a browser or `curl -OJ` saves the answer as."""
        words = (self.exchange_id, self.symbol, *more)
        return f"{'-'.join(re.sub(r'[^A-Za-z0-9._]+', '-', word) for word in words)}.{self.format}"
