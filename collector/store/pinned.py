"""An object that stays the one that was opened, or is gone.

An open file on a disk stays the same when its name is given to another. An object does not: the
next range comes from the object that has the name by then. So every range is requested with the tag
of the object that was opened.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

READ_AHEAD = 1 << 20
"""Bytes per request: a row group, or a footer, in one or two requests."""


class Pinned(io.RawIOBase):
    """A file to read from. `fetch` returns the bytes `[first, end)` of one fixed object."""

    def __init__(self, size: int, fetch: Callable[[int, int], bytes]) -> None:
        self._size = size
        self._fetch = fetch
        self._at = 0
        self._block = b""
        self._block_at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = origin + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if self._at >= end:
            return b""
        if not self._block_at <= self._at <= end <= self._block_at + len(self._block):
            until = min(self._size, max(end, self._at + READ_AHEAD))
            self._block, self._block_at = self._fetch(self._at, until), self._at
        data = self._block[self._at - self._block_at : end - self._block_at]
        self._at = end
        return data
