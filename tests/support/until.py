"""Waiting for a condition: checked again in short steps, until a deadline."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.jobs.job import Job
    from collector.jobs.queue import JobQueue

LEAST_STEP_SECONDS, LARGEST_STEP_SECONDS = 0.005, 0.05


async def until(ask: Callable[[], Any], what: str = "it is so", seconds: float = 120) -> Any:
    """The first true result of a function or a coroutine. Fails naming what never came."""
    step = LEAST_STEP_SECONDS
    try:
        async with asyncio.timeout(seconds):
            while not (answer := await _answer(ask)):
                await asyncio.sleep(step)
                # What takes long is asked for less often: many of these ask a database.
                step = min(1.2 * step, LARGEST_STEP_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not within {seconds} s: {what}") from None
    return answer


async def until_job(
    queue: JobQueue, job: Job, satisfied: Callable[[Job], object], seconds: float = 120
) -> Job:
    """The job, as soon as it is as wanted."""
    found = job

    async def as_wanted() -> bool:
        nonlocal found
        found = await queue.get(job.id)
        return bool(satisfied(found))

    await until(as_wanted, f"{job.type} of {job.symbol} is as wanted", seconds)
    return found


async def _answer(ask: Callable[[], Any]) -> Any:
    answer = ask()
    return await answer if inspect.isawaitable(answer) else answer
