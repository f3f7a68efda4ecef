"""A worker that kills itself, as by a pulled plug, the n-th time it comes to a chosen point.

Points are the moments of a write (`collector.store.port.Fault`) and `before_cursor` /
`after_cursor`, around the statement that moves a job's cursor.
"""

from __future__ import annotations

import argparse
import os
import signal
from typing import Any

import uvloop

from collector import logs
from collector.jobs.leasing import Leasing
from collector.mongo import location
from collector.settings import load
from collector.store import store
from collector.store.root import storage_at
from workers.main import Options, work


class Plug:
    def __init__(self, point: str, count: int) -> None:
        self._point = point
        self._left = count

    def reach(self, point: str) -> None:
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


async def run(plug: Plug) -> None:
    settings = load()
    commit = Leasing.commit

    async def dangerous_commit(self: Leasing, *args: Any, **options: Any) -> None:
        plug.reach("before_cursor")
        await commit(self, *args, **options)
        plug.reach("after_cursor")

    Leasing.commit = dangerous_commit  # type: ignore[method-assign]
    store.storage_at = lambda root: storage_at(root, lambda at, _path: plug.reach(at.value))  # type: ignore[assignment]
    async with location.mongodb(settings.mongo_address, settings.home, "dying worker") as uri:
        await work(settings, uri, Options())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--point", required=True)
    parser.add_argument("--count", type=int, default=2)
    arguments = parser.parse_args()
    logs.configure("INFO", "json")
    uvloop.run(run(Plug(arguments.point, arguments.count)))
