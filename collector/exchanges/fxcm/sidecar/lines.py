"""Bytes cut into lines, with a bound on how much of one line is kept."""

from __future__ import annotations

LINE_LIMIT = 1 << 20


class Lines:
    """Feed it what was read. A line longer than the limit is passed over and given as None."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._begun: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The lines that have ended, without their ends. Empty ones are left out."""
        lines: list[bytes | None] = []
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._keep(end)
            if self._length:
                lines.append(None if self._length > self._limit else b"".join(self._begun))
            self._begun, self._length = [], 0
        self._keep(rest)
        return lines

    def _keep(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length > self._limit:
            self._begun = []
        else:
            self._begun.append(piece)
