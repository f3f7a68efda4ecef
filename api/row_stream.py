"""Stored rows as a streamed answer, and that answer as the OpenAPI document describes it."""

from __future__ import annotations

import asyncio
from itertools import chain
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from api.problems import unprocessable
from api.row_formats import MEDIA_TYPES, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from api.row_formats import Format
    from api.schemas.ranges import RangeAsked

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
        raise unprocessable("end", "end_before_start", "end must be after start")


async def streamed(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, form: Format
) -> StreamingResponse:
    """The rows in the form that was asked for, a batch at a time."""
    pieces = encode(batches, schema, form)
    # The first piece before the status line: what fails, fails with a problem and not half-way.
    first = await asyncio.to_thread(next, pieces)
    return StreamingResponse(chain([first], pieces), media_type=MEDIA_TYPES[form])


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
