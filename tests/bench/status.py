"""What the state of the fleet costs with a hundred, ten thousand and a hundred thousand jobs.

Requests and the look whether anything was requested must cost the same, so the largest is measured
beside the smallest. What one worker does for all grows with the jobs: its time is printed, and it
must not hold the event loop.
"""

from __future__ import annotations

import gc
import tempfile
import time
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from bson import Timestamp

from collector.jobs.live_workers import LiveWorkers
from collector.operations.wishes import record_wishes
from collector.store.store import Store
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.jobs import Stalls
from tests.support.crowd import fill_jobs
from tests.support.local_api import serving
from workers.maintenance import Maintenance

if TYPE_CHECKING:
    from collector.mongo.client import Database
    from collector.store.port import Storage
    from tests.support.local_api import Client

SIZES = (100, 10_000, 100_000)
PATHS = ("/api/v1/status", "/metrics", "/api/v1/troubles", "/api/v1/census")
MOST_TIMES_FEWEST = 2.0
MOST_COUNT_MS = 2_000.0
MOST_STALL_MS = 50.0


async def run(bench: Bench) -> list[Figure]:
    sizes = bench.pick(SIZES, SIZES[:2])
    async with AsyncExitStack() as stack:
        fleets = {size: await Fleet.opened(bench, stack, size) for size in sizes}
        rows: list[list[Any]] = []
        figures: list[Figure] = []

        async def compare(name: str, method: str, *args: Any, bounded: bool = True) -> None:
            samples = await in_turn(
                {
                    str(size): partial(getattr(fleet, method), *args)
                    for size, fleet in fleets.items()
                },
                rounds=bench.pick(9, 5),
            )
            times = ratio(samples, str(sizes[-1]), str(sizes[0]))
            rows.append([name, *(median(each) for each in samples.values()), times])
            if bounded:
                title = f"status.{name}: {sizes[-1]:,} jobs / {sizes[0]}"
                figures.append(Figure(title, times, at_most=MOST_TIMES_FEWEST))

        for path in PATHS:
            await compare(path.removeprefix("/api/v1"), "request_ms", path)
        await compare("record, nothing requested", "record_ms")
        await compare("a turn at counting", "count_ms", bounded=False)
        await compare("record, all jobs read", "read_ms", bounded=False)
        bench.show(
            "the state of the fleet, ms", ["", *(f"{size:,} jobs" for size in sizes), "times"], rows
        )
        largest = fleets[sizes[-1]]
        figures += [
            Figure(
                "status.a turn at counting", await largest.count_ms(), " ms", at_most=MOST_COUNT_MS
            ),
            Figure(
                "status.longest stall of recording",
                min([await largest.stall_ms() for _ in range(3)]),
                " ms",
                at_most=MOST_STALL_MS,
            ),
        ]
    return figures


class Fleet:
    """A database with so many jobs and a live worker, its API and its lake."""

    def __init__(self, database: Database, client: Client, storage: Storage) -> None:
        self._database = database
        self._client = client
        self._storage = storage

    @classmethod
    async def opened(cls, bench: Bench, stack: AsyncExitStack, jobs: int) -> Fleet:
        database = await stack.enter_async_context(bench.database())
        await fill_jobs(database, jobs)
        # As if every job had been requested long ago.
        requested = {"requested_at": {"$literal": Timestamp(1, 1)}}
        await database.raw["jobs"].update_many({}, [{"$set": requested}])
        await LiveWorkers(database).be_seen("ann", {"host": "here", "pid": 1})
        lake = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-lake-")))
        client = await stack.enter_async_context(serving(database, lake))
        fleet = cls(database, client, Store(lake).storage)
        await fleet.count_ms()
        await record_wishes(database, fleet._storage)
        return fleet

    async def request_ms(self, path: str) -> float:
        started = time.monotonic()
        assert (await self._client.get(path)).status == 200
        return (time.monotonic() - started) * 1000

    async def record_ms(self) -> float:
        started = time.monotonic()
        assert not await record_wishes(self._database, self._storage)
        return (time.monotonic() - started) * 1000

    async def read_ms(self) -> float:
        """As when something was requested, and all jobs are read and written."""
        await self._database.system.update_one({"_id": "identity"}, {"$unset": {"recorded": ""}})
        started = time.monotonic()
        assert await record_wishes(self._database, self._storage)
        return (time.monotonic() - started) * 1000

    async def count_ms(self) -> float:
        """What the worker whose turn it is does for all."""
        await self._database.system.update_many({}, {"$set": {"due_at": 0}})
        started = time.monotonic()
        await Maintenance(self._database, "bench", 1).count()
        return (time.monotonic() - started) * 1000

    async def stall_ms(self) -> float:
        """How long nothing else could run while everything was recorded."""
        gc.disable()  # As workers do: a collection costs what else is in this process.
        try:
            stalls = Stalls()
            async with stalls.watched():
                await self.read_ms()
        finally:
            gc.enable()
        return stalls.longest_ms
