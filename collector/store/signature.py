"""Which program wrote a file, and what the file says."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector import __version__
from collector.market.candles import CANDLE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Iterator


@functools.cache
def build_signature() -> str:
    """`collector/<version>+<commit>`; the commit comes from COLLECTOR_COMMIT or the checkout."""
    commit = os.environ.get("COLLECTOR_COMMIT") or _checked_out(Path(__file__).parents[2])
    return f"collector/{__version__}+{commit[:12] or 'unknown'}"


class DataHash:
    """`data_hash`: SHA-256 over the logical content, whatever the encoding and the row groups.

    Each public column has a digest of its own, over its values in order: whole numbers and doubles
    little-endian (an unknown turnover is the quiet NaN 0x7ff8000000000000), flags one byte, texts
    in UTF-8 with a line feed after each (a null is empty). The hash is over the lines
    `<column>:<hex digest>\\n` in column order.
    """

    def __init__(self) -> None:
        self._columns = {name: hashlib.sha256() for name in CANDLE_SCHEMA.names}

    def update(self, table: pa.Table) -> None:
        """Adds the next rows."""
        for name, digest in self._columns.items():
            for chunk in table[name].chunks:
                digest.update(_bytes(chunk))

    def hexdigest(self) -> str:
        lines = "".join(f"{name}:{each.hexdigest()}\n" for name, each in self._columns.items())
        return hashlib.sha256(lines.encode()).hexdigest()


def _bytes(column: pa.Array) -> bytes:
    if pa.types.is_string(column.type):
        lines = pc.binary_join_element_wise(column.fill_null(""), "\n", "")
        _, offsets, text = lines.buffers()
        end = np.frombuffer(offsets, dtype=np.int32)[len(lines)]
        return bytes(memoryview(text)[:end])
    if pa.types.is_boolean(column.type):
        return bytes(column.to_numpy(zero_copy_only=False).astype("u1"))
    values = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def _checked_out(repository: Path) -> str:
    """The commit a checkout is at, read from its files: git itself may not be installed."""
    for name in _head_files(repository / ".git"):
        try:
            text = name.read_text().strip()
        except OSError:
            continue
        if re.fullmatch(r"[0-9a-f]{40}", text):
            return text
    return ""


def _head_files(git: Path) -> Iterator[Path]:
    try:
        head = (git / "HEAD").read_text().strip()
    except OSError:
        return
    yield git / "HEAD"
    if head.startswith("ref: "):
        yield git / head.removeprefix("ref: ")
