"""Ways to damage a file of a lake, and files as earlier versions of the store wrote them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from collector.store import footer as footers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NEW_KEYS = {b"kind", b"exchange", b"symbol", b"timeframe", b"rows", b"bars", b"footer_sha256"}
"""What footers did not have at first."""


def flip(data: bytes, place: int, bit: int = 0) -> bytes:
    """One bit turned over."""
    return data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :]


def footer_span(data: bytes) -> range:
    """Where the footer lies, its length and the magic behind it included."""
    return range(len(data) - 8 - int.from_bytes(data[-8:-4], "little"), len(data))


def page_place(data: bytes, group: int = 0, column: int = 1) -> int:
    """A byte of the values themselves."""
    chunk = pq.read_metadata(pa.BufferReader(data)).row_group(group).column(column)
    return int(chunk.data_page_offset + chunk.total_compressed_size - 2)


def resealed(data: bytes, old: bytes, new: bytes) -> bytes:
    """The same file with something else in its footer, as if it had been written so."""
    assert len(old) == len(new)
    start = footer_span(data).start
    footer = data[start:-8].replace(old, new)
    blank = footers._DIGEST_FIELD.search(footer)
    assert blank is not None
    footer = footer[: blank.start(1)] + b"0" * 64 + footer[blank.end(1) :]
    digest = footers.hashlib.sha256(footer).hexdigest().encode()
    return data[:start] + footer[: blank.start(1)] + digest + footer[blank.end(1) :] + data[-8:]


def rewritten(
    data: bytes, groups: Sequence[int] | None = None, without: frozenset[bytes] = frozenset()
) -> bytes:
    """The same rows, or those of some row groups, and the same keys but those left out."""
    file = pq.ParquetFile(pa.BufferReader(data))
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, file.schema_arrow.remove_metadata(), compression="zstd", write_page_checksum=True
    ) as out:
        for group in range(file.num_row_groups) if groups is None else groups:
            out.write_table(file.read_row_group(group))
        kept = {k: v for k, v in (file.metadata.metadata or {}).items() if k not in without}
        kept.pop(b"ARROW:schema", None)
        out.add_key_value_metadata(kept)
    return sink.getvalue()


def as_written_before(data: bytes) -> bytes:
    """The file as earlier versions wrote it."""
    return rewritten(data, without=frozenset(NEW_KEYS))


def some_places(places: range, step: int) -> Iterator[tuple[int, int]]:
    """Every so many bytes of a stretch, and one bit of each."""
    return ((place, place % 8) for place in places[::step])
