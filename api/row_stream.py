"""Stored rows as a streamed answer, and that answer as the OpenAPI document describes it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.responses import StreamingResponse

from api.row_coding import coding_for, compressed
from api.row_formats import MEDIA_TYPES, encode
from collector.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from api.deps import Services
    from api.row_coding import CodingName
    from api.row_formats import Format
    from api.schemas.ranges import RangeAsked
    from collector.errors import NotStored
    from collector.market.interval import Interval

STORED_FROM, STORED_TO, SYMBOL = "X-Stored-From", "X-Stored-To", "X-Symbol"
"""Headers with the range of all that is stored, in epoch ms, and the symbol as it is stored, which
may have been asked for without its slash.
"""
NOTHING_STORED = "X-Nothing-Stored"
"""Instead of them when nothing is stored: why."""
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TABLE = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {
        "columns": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The names of the columns",
        },
        "rows": {
            "type": "array",
            "items": {"type": "array", "items": {}},
            "description": "The rows, oldest first, a value for each column",
        },
    },
}


@dataclass(frozen=True, slots=True)
class StoredOfMarket:
    """What is stored of a market in all: its symbol as it is stored, and from when to when."""

    symbol: str
    range: Interval

    @property
    def headers(self) -> dict[str, str]:
        ends = {STORED_FROM: str(self.range.from_ms), STORED_TO: str(self.range.to_ms)}
        return {SYMBOL: _quoted(self.symbol), **ends}


def _quoted(text: str) -> str:
    """As a header may have it: symbols may have any letters."""
    return quote(text, safe=" /:;,'?")


async def check_listed(error: NotStored, asked: RangeAsked, parts: Services) -> None:
    """Refuses what is not stored, unless the exchange lists it: that is merely empty yet."""
    symbol = await parts.desk.one_meant(asked.exchange_id, asked.symbol)
    if not await parts.desk.check_known_symbol(asked.exchange_id, symbol, field="symbol"):
        refused = InvalidInput("symbol", "unknown_symbol", str(error))
        refused.near = error.near  # The message names them already.
        raise refused


async def streamed(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    form: Format,
    *,
    limit: int | None = None,
    escape: bool = False,
    file_name: str | None = None,
    coding: CodingName | None = None,
    stored: StoredOfMarket | NotFound | None = None,
) -> StreamingResponse:
    """The rows in the requested format, a batch at a time.

    `stored` is what there is in all, or why there is nothing.
    """
    chosen = coding_for(form, coding)
    pieces = compressed(encode(batches, schema, form, limit=limit, escape=escape), chosen)
    # The first piece before the status line: what fails, fails with a problem and not half-way.
    first = await asyncio.to_thread(next, pieces)
    headers = {"Vary": "Accept-Encoding"}
    if file_name is not None:
        headers["Content-Disposition"] = f'inline; filename="{file_name}"'
    if chosen is not None:
        headers["Content-Encoding"] = chosen
    if isinstance(stored, NotFound):
        headers[NOTHING_STORED] = _quoted(str(stored))
    elif stored is not None:
        headers |= stored.headers
    return StreamingResponse(chain([first], pieces), media_type=MEDIA_TYPES[form], headers=headers)


def described(
    description: str, schema: pa.Schema, row: Sequence[object]
) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that streams rows like this one."""
    example = {"columns": schema.names, "rows": [row]}
    return {
        200: {
            "description": description,
            "content": {
                "application/json": {"schema": _TABLE, "example": example},
                "text/csv": {"schema": {"type": "string"}},
                MEDIA_TYPES["arrow"]: _BINARY,
                MEDIA_TYPES["parquet"]: _BINARY,
            },
        }
    }
