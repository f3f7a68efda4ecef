"""`/api/v1/streams`: series to keep, as the jobs that keep them."""

import asyncio
from itertools import product
from typing import Any

from fastapi import APIRouter, Response

from api.deps import Parts
from api.job_request import check_range
from api.openapi import job_links, problems
from api.roles import OPERATOR
from api.schemas.jobs import JobView
from api.schemas.streams import NewStreams, StreamsView
from collector.jobs.job import Job, JobSpec
from collector.jobs.stream import stream_jobs

router = APIRouter(prefix="/api/v1/streams", tags=["jobs"])

AT_ONCE = 32
_MADE: dict[int | str, dict[str, Any]] = {
    200: {"model": StreamsView, "links": job_links("/existing/0")},
    201: {"links": job_links("/created/0")},
}


@router.post(
    "",
    summary="Keep series: make the jobs that are missing",
    dependencies=[OPERATOR],
    status_code=201,
    responses={**_MADE, **problems(409)},
)
async def make_streams(body: NewStreams, parts: Parts, response: Response) -> StreamsView:
    """Each series gets a job for new bars and one for its history. All names are checked first.

    201 when at least one job was made, 200 when all were there.
    """
    now_ms = await parts.now_ms()
    check_range(body.since, None, now_ms)
    await parts.desk.check_connector(body.exchange_id)
    series = list(product(dict.fromkeys(body.symbols), dict.fromkeys(body.timeframes)))
    for symbol, timeframe in series:
        await parts.desk.check_series(
            body.exchange_id, symbol, timeframe, fields=("symbols", "timeframes")
        )
    specs = [
        spec
        for symbol, timeframe in series
        for spec in stream_jobs(
            body.exchange_id,
            symbol,
            timeframe,
            now_ms=now_ms,
            since_ms=body.since or 0,
            backfill=body.backfill,
        )
    ]
    turn = asyncio.Semaphore(AT_ONCE)

    async def add(spec: JobSpec) -> tuple[Job, bool]:
        async with turn:
            return await parts.queue.add(spec)

    async with asyncio.TaskGroup() as group:
        adding = [group.create_task(add(spec)) for spec in specs]
    outcome = [task.result() for task in adding]
    created = [JobView.of(job) for job, made in outcome if made]
    existing = [JobView.of(job) for job, made in outcome if not made]
    response.status_code = 201 if created else 200
    return StreamsView(created=created, existing=existing)
