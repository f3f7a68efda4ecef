"""Ranges of stored rows in requests."""

import asyncio
import re
from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa
from pydantic import Field

from api.row_formats import Format
from api.schemas.fields import ExchangeId, Moment, QueryFields, Symbol
from collector.errors import InvalidInput

MOST_NEWEST = 100_000
"""Rows that are read before the first of them is sent."""


class Stretch(Protocol):
    """Stored rows of a range."""

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def newest(self, limit: int) -> pa.Table: ...


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
    """The form of the answer"""
    limit: int | None = Field(default=None, ge=1, le=2**31 - 1, description="How many rows at most")
    newest: bool = Field(
        default=False,
        description=f"The last `limit` rows of the range and not its first; at most {MOST_NEWEST}",
    )
    escape: bool = Field(
        default=False,
        description="csv: an apostrophe before text that a spreadsheet would take for a formula",
    )

    def check(self) -> None:
        """Refuses what contradicts itself."""
        if self.start is not None and self.end is not None and self.end <= self.start:
            raise InvalidInput("end", "end_before_start", "end must be after start")
        if self.newest and not 1 <= (self.limit or 0) <= MOST_NEWEST:
            raise InvalidInput("newest", "missing", f"`newest` needs a `limit` up to {MOST_NEWEST}")

    async def chosen(self, stretch: Stretch) -> Iterator[pa.RecordBatch]:
        """The rows of the stretch that were asked for."""
        if not self.newest:
            return stretch.batches()
        found = await asyncio.to_thread(stretch.newest, self.limit or 0)
        return iter(found.to_batches())

    def file_name(self, *more: str) -> str:
        """What a browser or `curl -OJ` saves the answer as."""
        words = (self.exchange_id, self.symbol, *more)
        return f"{'-'.join(re.sub(r'[^A-Za-z0-9._]+', '-', word) for word in words)}.{self.format}"
