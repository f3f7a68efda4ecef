"""Writes the ends of runs in batches.

Thousands of short jobs end every minute. The end of each is a statement of its own behind its own
fence; those that are ready at the same time are sent in one command, and while it is under way the
next batch gathers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pymongo import UpdateOne

from collector.errors import LeaseLost
from collector.jobs.lease_statements import held, settle_update
from collector.jobs.states import State

if TYPE_CHECKING:
    from bson import ObjectId

    from collector.jobs.lease import Lease
    from collector.jobs.settlement import Settlement
    from collector.mongo.client import Collection

MOST_AT_ONCE = 500


@dataclass(frozen=True, slots=True, eq=False)
class _Ending:
    lease: Lease
    settlement: Settlement
    written: asyncio.Future[None]


class Settling:
    """Writes the settlements of one worker's leases, in batches."""

    def __init__(self, jobs: Collection) -> None:
        self._jobs = jobs
        self._ready: list[_Ending] = []
        self._writing: asyncio.Task[None] | None = None

    async def settle(self, lease: Lease, settlement: Settlement) -> None:
        """Ends the lease. Safe to repeat when the answer was lost; raises LeaseLost."""
        ending = _Ending(lease, settlement, asyncio.get_running_loop().create_future())
        self._ready.append(ending)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="settling")
        await ending.written

    async def _write(self) -> None:
        while self._ready:
            batch, self._ready = self._ready[:MOST_AT_ONCE], self._ready[MOST_AT_ONCE:]
            try:
                lost = await self._write_together(batch)
            except Exception as error:  # noqa: BLE001 - every waiting caller must receive it
                for ending in batch:
                    _fail(ending, error)
                continue
            for ending in batch:
                lease = ending.lease
                if lease.job_id in lost:
                    _fail(ending, LeaseLost(f"job {lease.job_id}: fence {lease.fence} has passed"))
                elif not ending.written.done():
                    ending.written.set_result(None)

    async def _write_together(self, batch: list[_Ending]) -> set[ObjectId]:
        """One command; returns the jobs that were no longer ours."""
        result = await self._jobs.bulk_write(
            [UpdateOne(held(ending.lease), settle_update(ending.settlement)) for ending in batch],
            ordered=False,
        )
        if result.matched_count == len(batch):
            return set()
        fences = {ending.lease.job_id: ending.lease.fence for ending in batch}
        found = await self._jobs.find({"_id": {"$in": list(fences)}}, projection=["fence", "state"])
        # With our fence and at rest it is settled, by this command or by one whose answer was lost:
        # no other worker can have ended it under that fence.
        settled = {
            document["_id"]
            for document in found
            if document["fence"] == fences[document["_id"]] and document["state"] != State.RUNNING
        }
        return fences.keys() - settled


def _fail(ending: _Ending, error: Exception) -> None:
    if not ending.written.done():
        ending.written.set_exception(error)
