"""A streamed answer in its two binary forms, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.local_api import Client


async def both_tables(client: Client, url: str, asked: Mapping[str, str]) -> tuple[pa.Table, ...]:
    """What a route sends as arrow, and what it sends as parquet."""
    contents = []
    for form in ("arrow", "parquet"):
        async with client.session.get(url, params={**asked, "format": form}) as response:
            contents.append(await response.read())
    arrow, packed = contents
    return (
        pa.ipc.open_stream(arrow).read_all(),
        pa.parquet.read_table(pa.BufferReader(packed)),
    )
