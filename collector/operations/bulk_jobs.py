"""One change to many jobs: those that a filter names, finished ones left out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import CollectorError, InvalidInput, RetryLater
from collector.jobs.list_filters import is_finished
from collector.jobs.queue import JobQueue
from collector.jobs.states import State, Status
from collector.operations import job_changes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from collector.jobs.job import Job
    from collector.mongo.client import Database

AT_ONCE = 16
PAGE = 500


@dataclass(frozen=True, slots=True)
class BulkAnswer:
    """How many jobs were meant, how many are different now, and why others are not."""

    matched: int
    changed: int
    refused: tuple[str, ...] = ()
    """One line for each kind of refusal, at most a few."""


@dataclass(frozen=True, slots=True)
class BulkVerb:
    """A change to one job, and whether it would change this one."""

    apply: Callable[[Database, str], Awaitable[Job]]
    changes: Callable[[Job], bool]


VERBS = {
    "pause": BulkVerb(job_changes.pause, lambda job: job.status is Status.ACTIVE),
    "resume": BulkVerb(job_changes.resume, lambda job: job.status is Status.PAUSED),
    "run": BulkVerb(job_changes.run, lambda job: job.state is not State.RUNNING),
    "remove": BulkVerb(job_changes.delete, lambda _: True),
}
MOST_REFUSALS = 3


async def change_many(
    database: Database,
    verb: str,
    filters: Mapping[str, str | Sequence[str]],
    *,
    every: bool,
    dry_run: bool = False,
) -> BulkAnswer:
    """Applies `verb` to all jobs with these values; with `dry_run` it only counts them.

    Without any value `every` has to say that all of them are meant. A finished job is never among
    them: it is changed by its id.
    """
    if not filters and not every:
        raise InvalidInput("filter", "no_filter", "name which jobs, or say that all are meant")
    jobs = [job for job in await _all(database, filters) if not is_finished(job)]
    turn, action = asyncio.Semaphore(AT_ONCE), VERBS[verb]
    if dry_run:
        return BulkAnswer(len(jobs), sum(map(action.changes, jobs)))

    async def one(job: Job) -> str | bool:
        if not action.changes(job):
            return False
        async with turn:
            try:
                await action.apply(database, str(job.id))
            except RetryLater:
                raise  # MongoDB is away: the rest would fail the same way.
            except CollectorError as error:
                return str(error).replace(str(job.id), "ID")
        return True

    outcomes = await asyncio.gather(*(one(job) for job in jobs))
    refused = dict.fromkeys(each for each in outcomes if isinstance(each, str))
    return BulkAnswer(len(jobs), outcomes.count(True), tuple(refused)[:MOST_REFUSALS])


async def _all(database: Database, filters: Mapping[str, str | Sequence[str]]) -> list[Job]:
    """Read before the first change: a change moves a job between the pages of a list."""
    queue = JobQueue(database)
    jobs: list[Job] = []
    while True:
        page = await queue.find(filters, after=jobs[-1].id if jobs else None, limit=PAGE)
        jobs += page
        if len(page) < PAGE:
            return jobs
