"""Counts, one token a step. It asks no exchange anything: for tests and benchmarks.

`params`: `steps` to do in all (default 1), `step_ms` to spend on each, `repeat` to start over on
the job's schedule instead of finishing for good.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from collector.jobs.job import Cursor
from workers.handlers.registry import Again, Done, Outcome

if TYPE_CHECKING:
    from workers.job_run import JobRun


async def count(run: JobRun) -> Outcome:
    steps = int(run.job.params.get("steps", 1))
    pause = float(run.job.params.get("step_ms", 0)) / 1000
    while run.cursor.page < steps:
        await run.token()
        await asyncio.sleep(pause)
        await run.commit(replace(run.cursor, page=run.cursor.page + 1), pages=1)
    if run.job.params.get("repeat"):
        return Again(cursor=Cursor())
    return Done(cursor=replace(run.cursor, done=True))
