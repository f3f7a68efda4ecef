"""A task that follows a change stream ends when it is cancelled, whatever the driver does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from collector.mongo.client import Database


class Stream:
    """Reads for ever; repeats what was cancelled, as the driver does, at one of its three steps."""

    def __init__(self, swallows: str) -> None:
        self._swallows = swallows
        self.alive = True
        self.reached = asyncio.Event()

    async def _step(self, name: str) -> None:
        if name != self._swallows:
            return
        self.reached.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    async def watch(self, *_: Any, **__: Any) -> Stream:
        await self._step("open")
        return self

    async def try_next(self) -> None:
        await self._step("read")
        await asyncio.sleep(0)

    async def close(self) -> None:
        await self._step("close")


@pytest.mark.parametrize("step", ["open", "read", "close"])
async def test_a_cancelled_follower_ends(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(step)
    async with Database("mongodb://127.0.0.1:1", "none") as database:
        monkeypatch.setattr(database, "_raw", stream)

        async def follow() -> None:
            while True:
                async with database.changes([]) as following:
                    for _ in range(3):
                        await following()

        task = asyncio.create_task(follow())
        await stream.reached.wait()
        task.cancel()
        await asyncio.wait([task], timeout=120)
        assert task.cancelled()
