"""Whether a process is alive, by its id."""

from __future__ import annotations

import asyncio
import os

_PATIENCE_SECONDS = 120


async def gone(pid: int) -> None:
    """Returns when the process is no more, or only waits for its parent to notice."""
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while is_alive(pid):
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The state comes after the name, which is in brackets and may hold any character.
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        # It may end between the two lines above.
        return not os.path.isdir("/proc")
