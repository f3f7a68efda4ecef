"""A connector that goes while somebody adds jobs: neither order leaves an active job alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.removal import Removal
from collector.errors import ActiveJobs, JobConflict, NotFound
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.operations import connected_jobs
from tests.integration.interleaving import interleaved, orders

if TYPE_CHECKING:
    from collector.mongo.client import Database

LIMITS = Limits(20, 1000)
STREAM = JobSpec("x", "ohlcv_incremental", "A/B", "1m")
DUTY = JobSpec("x", "gap_scan")
ADDING, REMOVING = 4, 5
"""Statements that each takes at most."""


@pytest.fixture
def queue(database: Database) -> JobQueue:
    return JobQueue(database)


@pytest.fixture
async def registry(database: Database) -> ConnectorRegistry:
    registry = ConnectorRegistry(database)
    await registry.ensure("x", LIMITS)
    return registry


async def connector_stands(registry: ConnectorRegistry) -> bool:
    try:
        await registry.get("x")
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("cascade", [False, True])
@pytest.mark.parametrize("spec", [STREAM, DUTY])
async def test_adding_and_removing_in_every_order_leave_no_job_alone(
    database: Database, registry: ConnectorRegistry, queue: JobQueue, spec: JobSpec, cascade: bool
) -> None:
    async def add(stepped: Any) -> Any:
        return await connected_jobs.add(stepped, [spec])

    async def remove(stepped: Any) -> Any:
        return await connected_jobs.remove_connector(stepped, "x", cascade=cascade)

    ends = set()
    for order in orders(ADDING, REMOVING):
        await database.jobs.delete_many({})
        await registry.ensure("x", LIMITS)
        added, removed = await interleaved(database, order, add, remove)
        active = await queue.find({"status": "active"})
        stands = await connector_stands(registry)
        assert stands or not active, order
        assert isinstance(added, list | JobConflict), added
        assert isinstance(removed, tuple | JobConflict), removed
        assert stands == isinstance(removed, JobConflict), order
        if isinstance(added, list) and not cascade and spec is STREAM:
            # Whoever was told that there is a job has one.
            assert stands, order
            assert [job.id for job in active] == [added[0][0].id], order
        assert await Removal(database).stands("x") == stands, "an announcement was left behind"
        ends.add((isinstance(added, list), isinstance(removed, tuple)))
    assert {(True, False), (False, True)} <= ends or cascade or spec is DUTY


async def test_resuming_and_removing_in_every_order_leave_no_job_alone(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    job, _ = await queue.add(STREAM)

    async def resume(stepped: Any) -> Any:
        return await connected_jobs.resume(stepped, job.id)

    async def remove(stepped: Any) -> Any:
        return await connected_jobs.remove_connector(stepped, "x")

    for order in orders(5, REMOVING):
        await registry.ensure("x", LIMITS)
        await queue.pause(job.id)
        await interleaved(database, order, resume, remove)
        assert await connector_stands(registry) or not await queue.find({"status": "active"}), order


async def test_a_connector_with_active_jobs_stays_and_takes_new_ones(
    database: Database, registry: ConnectorRegistry
) -> None:
    await connected_jobs.add(database, [STREAM])
    with pytest.raises(ActiveJobs, match="x has 1 active job: pause or delete"):
        await connected_jobs.remove_connector(database, "x")
    [(_, made)] = await connected_jobs.add(database, [JobSpec("x", "count")])
    assert made


async def test_a_connector_goes_with_its_duties_and_paused_jobs_wait_for_another(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    duties = [JobSpec("x", duty) for duty in types.duties()]
    [(job, _), *_] = await connected_jobs.add(database, [STREAM, *duties])
    await queue.pause(job.id)
    connector, gone = await connected_jobs.remove_connector(database, "x")
    assert (connector.status, gone) == ("deleted", len(types.duties()))
    for start in (connected_jobs.resume, connected_jobs.run):
        with pytest.raises(JobConflict, match="is gone or being removed"):
            await start(database, job.id)
    assert (await queue.get(job.id)).status is Status.PAUSED
    with pytest.raises(NotFound):
        await connected_jobs.remove_connector(database, "x")
    await registry.ensure("x", LIMITS)
    assert (await connected_jobs.resume(database, job.id)).state is State.QUEUED


async def test_many_jobs_without_a_connector_are_all_taken_back(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    specs = [JobSpec("nobody", "count", symbol=str(number)) for number in range(100)]
    kept, _ = await queue.add(specs[0])
    others = [JobSpec("nobody either", "count"), STREAM]
    with pytest.raises(JobConflict, match="connector of nobody, nobody either is gone"):
        await connected_jobs.add(database, [*specs, *others])
    left = [(job.id, job.exchange_id) for job in await queue.find()]
    assert left[0] == (kept.id, "nobody"), "it was there before"
    assert [exchange_id for _, exchange_id in left[1:]] == ["x"], "its connector stands"


async def test_a_removal_whose_process_died_runs_out(
    database: Database, registry: ConnectorRegistry
) -> None:
    token = await Removal(database).announce("x")
    with pytest.raises(JobConflict):
        await connected_jobs.add(database, [STREAM])
    await database.connectors.update_one({"exchange_id": "x"}, {"$set": {"removal.until": 1}})
    await connected_jobs.add(database, [STREAM])
    assert await Removal(database).finish("x", token) is None, "jobs may have come since"
    assert await connector_stands(registry)


async def test_two_removals_at_once_end_in_one(
    database: Database, registry: ConnectorRegistry
) -> None:
    async def remove(stepped: Any) -> Any:
        return await connected_jobs.remove_connector(stepped, "x")

    for order in orders(REMOVING, REMOVING):
        await registry.ensure("x", LIMITS)
        ends = await interleaved(database, order, remove, remove)
        assert sum(isinstance(end, tuple) for end in ends) == 1, (order, ends)
        assert not await connector_stands(registry)


async def test_a_crowd_of_adders_and_removers_leaves_no_job_alone(
    database: Database, registry: ConnectorRegistry, queue: JobQueue
) -> None:
    specs = [JobSpec("x", "count", symbol=str(number)) for number in range(200)]
    adding = [connected_jobs.add(database, [spec]) for spec in specs]
    removing = [connected_jobs.remove_connector(database, "x", cascade=True) for _ in range(3)]
    await asyncio.gather(*adding[:100], *removing, *adding[100:], return_exceptions=True)
    assert not await connector_stands(registry)
    assert not await queue.find({"status": "active"})
