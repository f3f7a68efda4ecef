"""A worker whose disk has no room as long as the file `FULL_DISK_FLAG` is there."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import uvloop

from collector import logs
from collector.mongo import location
from collector.settings import load
from collector.store import store
from collector.store.port import StorageFault
from collector.store.root import storage_at
from workers.main import Options, work

FLAG = Path(os.environ.get("FULL_DISK_FLAG", "/nowhere"))


def no_room(point: StorageFault, _path: str) -> None:
    if point is StorageFault.BEFORE_WRITE and FLAG.exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def run() -> None:
    settings = load()
    store.storage_at = lambda root: storage_at(root, no_room)  # type: ignore[assignment]
    async with location.mongodb(settings.mongo_address, settings.home, "full disk worker") as uri:
        await work(settings, uri, Options())


if __name__ == "__main__":
    logs.configure("INFO", "json")
    uvloop.run(run())
