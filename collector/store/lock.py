"""A lock between processes of one machine, which the kernel releases when its holder dies."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from collector.store.port import Swapped

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Holds the lock file at `path`. Raises Swapped at once when another process has it.

    It does not wait: the holder may be frozen, and the work can be done again later.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            _try_lock(handle)
        except OSError as error:
            raise Swapped(f"{path.name} is held: another compaction is finishing") from error
        yield
    finally:
        os.close(handle)
