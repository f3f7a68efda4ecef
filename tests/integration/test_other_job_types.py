"""Jobs of types that another version of the program made, and a type with a cursor of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.jobs.params import Params
from collector.jobs.states import State
from tests.integration.test_worker_runtime import queue, registry, working
from tests.support.local_api import serving
from tests.support.until import until_job
from workers.handlers.registry import Done, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

    from collector.connectors.registry import ConnectorRegistry
    from collector.jobs.queue import JobQueue
    from collector.mongo.client import Database
    from workers.job_run import JobRun

__all__ = ["queue", "registry"]
NEWER: dict[str, Any] = {
    "type": "from_the_future",
    "unique_key": "x|from_the_future||",
    "schedule": {"mode": "poll", "cadence": "m1"},
    "cursor": {"block": 7, "hash": "0xab"},
    "params": {"addresses": ["0x1"]},
}


async def newer_job(database: Database, queue: JobQueue) -> Any:
    job, _ = await queue.add(JobSpec("x", "count", first_run_ms=2**52))
    await database.jobs.update_one({"_id": job.id}, {"$set": NEWER})
    return await queue.get(job.id)


async def test_a_type_nobody_here_knows_is_listed_and_shown(
    database: Database, registry: ConnectorRegistry, queue: JobQueue, tmp_path: Path
) -> None:
    job = await newer_job(database, queue)
    async with serving(database, tmp_path) as client:
        [listed] = (await client.get("/api/v1/jobs")).body["items"]
        shown = (await client.get(f"/api/v1/jobs/{job.id}")).body
    assert shown == listed
    assert (shown["type"], shown["schedule"]) == (NEWER["type"], NEWER["schedule"])
    assert shown["params"] == NEWER["params"]


async def test_a_worker_leaves_it_to_a_newer_one_and_goes_on(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    await queue.run((await newer_job(database, queue)).id)
    before = await queue.find({"type": str(NEWER["type"])})
    async with working(database):
        other, _ = await queue.add(JobSpec("x", "count"))
        await until_job(queue, other, lambda each: each.state is State.SUCCESS)
    assert await queue.find({"type": str(NEWER["type"])}) == before


@dataclass(frozen=True, slots=True)
class BlockCursor:
    """A place in a chain: the last block that is stored, and its hash, to see a reorganisation."""

    block: int = 0
    hash: str = ""
    done: bool = False

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Self:
        given = document or {}
        return cls(given.get("block", 0), given.get("hash", ""), given.get("done", False))

    def to_document(self) -> dict[str, Any]:
        return {"block": self.block, "hash": self.hash, "done": self.done}


@dataclass(frozen=True, slots=True)
class ChainParams(Params):
    addresses: tuple[str, ...] = ()


CHAIN = types.JobType(
    "chain",
    "walks along a chain",
    types.Scope.NETWORK,
    60,
    cursor=BlockCursor,
    params=ChainParams,
)


async def walk(run: JobRun) -> Outcome:
    at = run.job.cursor_as(BlockCursor)
    for _ in run.job.params_as(ChainParams).addresses:
        at = replace(at, block=at.block + 1, hash=f"0x{at.block + 1:02x}")
        await run.commit(at, pages=1)
    return Done(cursor=replace(at, done=True))


async def test_a_type_may_keep_a_cursor_and_params_of_its_own(
    database: Database,
    registry: ConnectorRegistry,
    queue: JobQueue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(types.TABLE, CHAIN.name, CHAIN)
    spec = JobSpec("x", CHAIN.name, cursor=BlockCursor(5), params={"addresses": ["0x1", "0x2"]})
    async with working(database, {CHAIN.name: walk}), serving(database, tmp_path) as client:
        job, _ = await queue.add(spec)
        ended = await until_job(queue, job, lambda each: each.state is State.SUCCESS)
        shown = (await client.get(f"/api/v1/jobs/{job.id}")).body
    assert ended.cursor_as(BlockCursor) == BlockCursor(7, "0x07", done=True)
    assert shown["cursor"] == {"block": 7, "hash": "0x07", "done": True}
    assert ended.document["stats"]["success"] == 1
