"""The disk: where the lake and the home are, whether they can be written, and how much room is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from collector.operations.doctor.finding import Finding, ok, problem, warning
from collector.operations.doctor.medium import refusal
from collector.operations.troubles import is_little
from collector.store.address import in_object_store
from collector.store.disk import LocalDisk
from collector.store.room import disk_room

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "disk"


def disk(settings: Settings) -> list[Finding]:
    """The folder of the lake, unless that is in an object store, and the embedded database's."""
    found = []
    if not in_object_store(settings.data_root):
        found.append(_writable(Path(settings.data_root), "the lake"))
        found.append(_room(settings.data_root, "the lake"))
    if settings.mongo_uri is None:
        found.append(_room(str(settings.home), "the home"))
    return found


def _writable(root: Path, what: str) -> Finding:
    if not root.exists():
        # Not made here: it would belong to whoever runs this check.
        above = next(folder for folder in root.absolute().parents if folder.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return ok(AREA, f"{what}, {root}, is not there yet; the first write makes it")
        return problem(
            AREA, f"{what}, {root}, cannot be made in {above}", f"chown or chmod {above}"
        )
    why = refusal(LocalDisk(root))
    if why is not None:
        return problem(AREA, f"{what}, {root}, takes no file: {why}", f"make room, or chown {root}")
    return ok(AREA, f"{what}, {root}, can be written")


def _room(root: str, what: str) -> Finding:
    room = disk_room(root)
    if room is None:
        return warning(AREA, f"the disk of {what} does not say how much room it has")
    free, total = room.free_bytes, room.total_bytes
    words = f"{free / 2**30:,.1f} of {total / 2**30:,.1f} GiB free where {what} is"
    if is_little(free, total):
        return problem(AREA, words, f"make room in {root}")
    return ok(AREA, words)
