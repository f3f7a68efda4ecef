"""Stored rows as a streamed answer, and that answer as the OpenAPI document describes it."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from api.row_formats import MEDIA_TYPES, encode
from collector.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from api.deps import Services
    from api.row_formats import Format
    from api.schemas.ranges import RangeAsked
    from collector.errors import NotStored

_BINARY = {"schema": {"type": "string", "format": "binary"}}
_TABLE = {
    "type": "object",
    "required": ["columns", "rows"],
    "properties": {
        "columns": {"type": "array", "items": {"type": "string"}},
        "rows": {"type": "array", "items": {"type": "array", "items": {}}},
    },
}


def check_order(asked: RangeAsked) -> None:
    """Refuses a range that ends before it begins."""
    if asked.start is not None and asked.end is not None and asked.end <= asked.start:
        raise InvalidInput("end", "end_before_start", "end must be after start")


async def check_listed(
    not_stored: Callable[[], NotStored], asked: RangeAsked, parts: Services
) -> None:
    """Refuses what is not stored, unless the exchange lists it: that is merely empty yet."""
    if not await parts.desk.check_known_symbol(asked.exchange_id, asked.symbol, field="symbol"):
        error = await asyncio.to_thread(not_stored)
        reason = f"nothing is stored for {asked.exchange_id} {asked.symbol!r}"
        raise InvalidInput("symbol", "unknown_symbol", reason, error.near)


async def streamed(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    form: Format,
    *,
    limit: int | None = None,
    escape: bool = False,
    file_name: str | None = None,
) -> StreamingResponse:
    """The rows in the requested format, a batch at a time."""
    pieces = encode(batches, schema, form, limit=limit, escape=escape)
    # The first piece before the status line: what fails, fails with a problem and not half-way.
    first = await asyncio.to_thread(next, pieces)
    headers = (
        {} if file_name is None else {"Content-Disposition": f'inline; filename="{file_name}"'}
    )
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
