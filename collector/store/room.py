"""How much room the medium of a lake has."""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from collector.store.address import in_object_store


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """Free and total bytes of a local disk."""

    free_bytes: int
    total_bytes: int


def disk_room(root: str) -> DiskRoom | None:
    """The room where a lake is, or will be; None for an object store."""
    if in_object_store(root):
        return None
    path = Path(root).absolute()
    for folder in (path, *path.parents):
        with suppress(OSError):
            found = shutil.disk_usage(folder)
            return DiskRoom(found.free, found.total)
    return None
