"""A disk without room: a small one that is really full, or a worker that is told so."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BLOCK = bytes(1 << 16)


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[bool]:
    """A disk of that size at `place`; False when there is none, as only root may mount one."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    root_in_ci = os.environ.get("CI") and os.geteuid() == 0
    assert mounted or not root_in_ci, "root could not mount a tmpfs"
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """Takes all the room there is on a small disk until the block ends."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(_BLOCK)
    assert os.statvfs(place).f_bavail == 0
    yield
    ballast.unlink()


@contextmanager
def said_to_be_full(flag: Path) -> Iterator[None]:
    """What `full_disk_worker` looks for."""
    flag.touch()
    yield
    flag.unlink()
