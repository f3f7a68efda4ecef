"""A job that counts, one token a step, without an exchange: work for tests of workers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector.jobs.job import Cursor
from collector.jobs.params import Params
from workers.handlers.registry import Again, Done, HandlerRegistry, Outcome

if TYPE_CHECKING:
    from workers.job_run import JobRun

COUNT = "count"


@dataclass(frozen=True, slots=True)
class CountParams(Params):
    """How many tokens to buy, how long each step takes, whether to start over at the next run."""

    steps: int = 1
    step_ms: float = 0.0
    repeat: bool = False


async def count(run: JobRun) -> Outcome:
    params = CountParams.of(run.job.params)
    pause = params.step_ms / 1000
    while run.cursor.page < params.steps:
        await run.token()
        await asyncio.sleep(pause)
        await run.commit(replace(run.cursor, page=run.cursor.page + 1), pages=1)
    if params.repeat:
        return Again(cursor=Cursor())
    return Done(cursor=replace(run.cursor, done=True))


def with_count(handlers: HandlerRegistry) -> HandlerRegistry:
    """What a worker runs, and jobs that count."""
    return HandlerRegistry({each: handlers.find(each) for each in handlers.types} | {COUNT: count})
