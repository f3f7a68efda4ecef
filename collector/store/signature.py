"""Which program wrote a file, and a hash of its content."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.market.candles import CANDLE_SCHEMA
from collector.store.checkout import commit_of
from collector.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence


@functools.cache
def build_signature() -> str:
    """`collector/<version>+<commit>`.

    The commit comes from COLLECTOR_COMMIT, which an image is built with, else from the checkout.
    """
    commit = os.environ.get("COLLECTOR_COMMIT") or commit_of(Path(__file__).parents[2])
    return f"collector/{__version__}+{commit[:12] or 'unknown'}"


class DataHash:
    """`data_hash`: SHA-256 over the logical content, whatever the encoding and the row groups.

    Each public column has a digest of its own, over its values in order: whole numbers and doubles
    little-endian (an unknown turnover is the quiet NaN 0x7ff8000000000000), flags one byte, texts
    in UTF-8 with a line feed after each (a null is empty). The hash is over the lines
    `<column>:<hex digest>\\n` in column order; an exchange's further columns follow by name.
    """

    def __init__(self, extra: Sequence[str] = ()) -> None:
        names = (*CANDLE_SCHEMA.names, *sorted(extra))
        self._columns = {name: hashlib.sha256() for name in names}

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
        one = _repeated(column)
        if one is not None:
            return (one + b"\n") * len(column)
        lines = pc.binary_join_element_wise(column.fill_null(""), "\n", "")
        _, offsets, text = lines.buffers()
        end = np.frombuffer(offsets, dtype=np.int32)[len(lines)]
        return bytes(memoryview(text)[:end])
    if pa.types.is_boolean(column.type):
        return bytes(column.to_numpy(zero_copy_only=False).astype("u1"))
    values = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("<")).tobytes()


def _repeated(column: pa.Array) -> bytes | None:
    """The text that every row has: nearly always the exchange's name, or none."""
    if column.null_count == len(column):
        return b""
    if column.null_count:
        return None
    _, offsets, text = column.buffers()
    ends = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    every = bytes(memoryview(text)[ends[0] : ends[-1]])
    one = every[: ends[1] - ends[0]]
    same = (np.diff(ends) == len(one)).all() and every == one * len(column)
    return one if same else None
