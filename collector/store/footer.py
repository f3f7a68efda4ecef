"""Footers that can be checked: whose rows a file holds, and a digest of the footer's own bytes.

Pages carry checksums, but nothing in Parquet covers the footer, and one wrong bit there is enough:
in a row count, an offset or a statistic it hides rows without an error. So every file has in its
footer

    kind, exchange, symbol, timeframe   whose rows these are, as far as it applies
    footer_sha256                       SHA-256 of the footer with these 64 digits as zeros

Both are checked whenever a footer is read. Files of earlier versions have neither and are accepted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from collector.store.port import Corrupt, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collector.market.series import Series

DIGEST = "footer_sha256"
DAMAGE = (pa.ArrowException, OSError, EOFError, KeyError, ValueError)
"""What pyarrow raises for a file that is not what was written; see `damage`."""

_BLANK = b"0" * 64
_DIGEST_FIELD = re.compile(DIGEST.encode() + rb"..([0-9a-f]{64})", re.DOTALL)
"""The two bytes between key and value are Thrift's."""
_MAGIC = b"PAR1"
_END = 8
"""Bytes behind a footer: its length and the magic."""
_GUESS = 65_536


def identity(kind: str, series: Series) -> dict[str, str]:
    """Whose rows a file holds, by its footer."""
    return {
        "kind": kind,
        "exchange": series.exchange_id,
        "symbol": series.symbol,
        "timeframe": series.timeframe.name,
    }


def whose(series: Series) -> dict[str, str]:
    """What the footer of any file of the series must contain, whatever its kind."""
    return {key: value for key, value in identity("", series).items() if value}


@contextlib.contextmanager
def writing(sink: Any, schema: pa.Schema, **how: Any) -> Iterator[pq.ParquetWriter]:
    """A writer of pages that carry checksums, closed at the end. `sink` outlives it."""
    settings = {"compression": "zstd", "write_page_checksum": True, **how}
    out = pq.ParquetWriter(sink, schema, **settings)
    try:
        yield out
        out.close()
    except BaseException:
        # This file will not be read. But the garbage collector must not close the writer later,
        # into a file that is gone.
        with contextlib.suppress(Exception):
            out.close()
        out.is_open = False
        raise


def close(out: pq.ParquetWriter, sink: Any, metadata: Mapping[str, str]) -> None:
    """Ends a file with this metadata and the footer's digest. `sink` can be read and moved in."""
    out.add_key_value_metadata({**metadata, DIGEST: _BLANK.decode()})
    out.close()
    end = sink.seek(0, os.SEEK_END)
    sink.seek(end - _END)
    start = end - _END - _length(sink.read(_END))
    sink.seek(start)
    footer = sink.read(end - _END - start)
    field = _DIGEST_FIELD.search(footer)
    assert field is not None, "the key and the value that were just written"
    sink.seek(start + field.start(1))
    sink.write(hashlib.sha256(footer).hexdigest().encode())
    sink.seek(0, os.SEEK_END)


def read_footer(path: str, file: Any, doubtful: Callable[[], None]) -> pq.FileMetaData:
    """The footer of an open file. Raises Corrupt when it is not what was written.

    `doubtful` is called before a footer without a digest is parsed. A damaged one can make the
    parser allocate any amount of memory, or end the process.
    """
    try:
        footer, end = _raw(path, file)
        has_digest = _holds(path, footer)
        if not has_digest:
            doubtful()
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + footer + end))
    except DAMAGE as error:
        raise damage(path, error) from error
    if not has_digest and b"kind" in (metadata.metadata or {}):
        raise Corrupt(path, "its footer has no digest")
    return metadata


def open_bytes(path: str, data: bytes, expected: Mapping[str, str]) -> pq.ParquetFile:
    """A whole file in memory, its footer checked. Raises Corrupt."""
    file = pa.BufferReader(data)
    footer = read_footer(path, file, lambda: None)
    check_identity(path, footer, expected)
    try:
        return pq.ParquetFile(file, metadata=footer, page_checksum_verification=True)
    except DAMAGE as error:
        raise damage(path, error) from error


def check_identity(path: str, footer: pq.FileMetaData, expected: Mapping[str, str]) -> None:
    """Raises Corrupt when the footer names other rows than these."""
    found = footer.metadata or {}
    for key, value in expected.items():
        actual = found.get(key.encode(), value.encode()).decode(errors="replace")
        if actual != value:
            raise Corrupt(path, f"its {key} is {actual}, not {value}")


def damage(path: str, error: Exception) -> Corrupt | Unavailable:
    """Distinguishes a damaged file from a medium that could not be read: EIO, ESTALE."""
    if isinstance(error, OSError) and error.errno is not None:
        return Unavailable(f"{path}: {error.strerror or error}")
    return Corrupt(path, error)


def _holds(path: str, footer: bytes) -> bool:
    """Whether the footer has a digest, and it matches. Raises Corrupt when it does not match."""
    field = _DIGEST_FIELD.search(footer)
    if field is None:
        return False
    blank = footer[: field.start(1)] + _BLANK + footer[field.end(1) :]
    if hashlib.sha256(blank).hexdigest().encode() != field[1]:
        raise Corrupt(path, "its footer is not what was written")
    return True


def _raw(path: str, file: Any) -> tuple[bytes, bytes]:
    """The bytes of the footer, and those behind it."""
    size = file.size()
    start = max(0, size - _GUESS)
    file.seek(start)
    data = file.read(size - start)
    end = data[-_END:]
    if len(end) < _END or end[4:] != _MAGIC:
        raise Corrupt(path, "it does not end like a Parquet file")
    length = _length(end)
    if length + _END + len(_MAGIC) > size:
        raise Corrupt(path, "its footer is longer than the file")
    if length + _END > len(data):
        file.seek(size - _END - length)
        data = file.read(length + _END)
    footer = data[-_END - length : -_END]
    if DIGEST.encode() in data and DIGEST.encode() not in footer:
        raise Corrupt(
            path, "its footer is longer than its length field"
        )  # Half of one must not be parsed.
    return footer, end


def _length(end: bytes) -> int:
    return int.from_bytes(end[:4], "little")
