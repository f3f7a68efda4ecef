"""The worker that owns a price stream is killed or frozen: another one publishes, never two."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.jobs.job import JobSpec
from tests.support.fleet import fleet
from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from tests.support.fleet import Fleet

PARAMS = {"symbols": ["BTC/USDT", "ETH/USDT"], "price_snap_interval_seconds": 0.2}
PATIENCE = 120.0


class PublishedStates:
    """Every state that was ever in `live`, in order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, dict[str, Any]]] = []
        self.watching = asyncio.Event()

    def newest(self, kind: str) -> int:
        return max((fence for each, fence, _ in self.seen if each == kind), default=0)

    def check(self) -> None:
        for kind in ("price", "heartbeat"):
            fences = [fence for each, fence, _ in self.seen if each == kind]
            assert fences == sorted(fences), f"an old owner published a {kind}"


@asynccontextmanager
async def published(database: Database) -> AsyncIterator[PublishedStates]:
    states = PublishedStates()

    async def watch() -> None:
        async with await database.raw["live"].watch(full_document="updateLookup") as stream:
            states.watching.set()
            while True:
                change = await stream.try_next()
                document = (change or {}).get("fullDocument")
                if document is not None:
                    states.seen.append((document["kind"], document["fence"], document["payload"]))

    task = asyncio.create_task(watch())
    await states.watching.wait()
    try:
        yield states
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def streaming_job(f: Fleet) -> Job:
    return (await f.queue.add(JobSpec("simulated", "price_stream", params=PARAMS)))[0]


async def owner_pid(f: Fleet, job: Job) -> int:
    async def owner() -> str | None:
        found: str | None = (await f.queue.get(job.id)).document["lock"]["locked_by"]
        return found

    return int((await until(owner, "the stream has an owner", PATIENCE)).split(":")[1])


async def test_another_worker_publishes_when_the_owner_is_killed(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with (
        fleet(database, mongo_uri, tmp_path) as f,
        f.worker(),
        f.worker(),
        published(database) as states,
    ):
        job = await streaming_job(f)
        await until(lambda: states.newest("price"), "prices are published", PATIENCE)
        before, pid = states.newest("price"), await owner_pid(f, job)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: states.newest("price") > before, "the other one publishes", PATIENCE)
        assert await owner_pid(f, job) != pid
        states.check()


async def test_an_owner_that_wakes_up_after_its_lease_publishes_nothing(
    database: Database, mongo_uri: str, tmp_path: Path
) -> None:
    async with (
        fleet(database, mongo_uri, tmp_path) as f,
        f.worker(),
        f.worker(),
        published(database) as states,
    ):
        job = await streaming_job(f)
        await until(lambda: states.newest("price"), "prices are published", PATIENCE)
        before, pid = states.newest("price"), await owner_pid(f, job)
        os.kill(pid, signal.SIGSTOP)
        try:
            await until(
                lambda: states.newest("price") > before, "the other one publishes", PATIENCE
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        count = len(states.seen)
        await until(lambda: len(states.seen) > count + 20, "it goes on publishing", PATIENCE)
        states.check()
