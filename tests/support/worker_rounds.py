"""Whether workers leave jobs alone, without waiting for long: by the rounds they make meanwhile.

A worker looks for due jobs exchange by exchange, in rounds. A job that is added now, on a connector
of its own, and is done shows that a round came by; of several in a row, all but the first show one
that began after now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.jobs.schedule import Once
from collector.jobs.states import State
from tests.support.until import until_job

if TYPE_CHECKING:
    from collector.mongo.client import Database

WITNESS = "witness"
ROUNDS = 4


async def check_left_alone(database: Database, jobs: dict[str, Any]) -> None:
    """Fails if a worker claims one of these jobs in its next rounds."""
    before = await _fences(database, jobs)
    assert before, f"there is no job with {jobs}"
    await _rounds(database)
    assert await _fences(database, jobs) == before


async def _fences(database: Database, jobs: dict[str, Any]) -> dict[Any, int]:
    """Of each job, which every claim raises."""
    return {found["_id"]: found["fence"] for found in await database.jobs.find(jobs)}


async def _rounds(database: Database) -> None:
    await ConnectorRegistry(database).ensure(WITNESS, Limits(1_000, 1_000))
    queue = JobQueue(database)
    for number in range(ROUNDS):
        job, _ = await queue.add(
            JobSpec(WITNESS, "tail_refresh", symbol=str(number), schedule=Once())
        )
        await until_job(queue, job, lambda job: job.state is State.SUCCESS)
    # Gone, so that no list of jobs shows them.
    await database.raw["jobs"].delete_many({"exchange_id": WITNESS})
