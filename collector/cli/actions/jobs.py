"""What `collector job` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson import ObjectId
from rich.console import Group

from collector.cli.actions.known import known_type
from collector.cli.actions.new_job import Wanted, spec_of
from collector.cli.actions.workers import nobody_works
from collector.cli.answer import Answer, table
from collector.cli.facts import job_facts, run_facts
from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_age, shown_moment, shown_span
from collector.cli.opened import opened
from collector.errors import CollectorError
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from collector.cli.verb import Asked
    from collector.jobs.job import Job

RUNS_SHOWN = 10
NONE_YET = "no jobs yet: collector add binance BTC/USDT"
_HEADINGS = ("id", "exchange", "type", "symbol", "tf", "state", "reached (UTC)", "next run")


async def add(asked: Asked, wanted: Wanted) -> Answer:
    async with opened(asked, "job add") as database:
        spec, notes = await spec_of(database, wanted)
        job, made = await JobQueue(database).add(spec)
        notes = [*notes, *await nobody_works(database)]
    said = f"{'added' if made else 'was there already:'} {job_words(job)}"
    return Answer({"created": made, "job": job_facts(job)}, said, notes)


async def listed(
    asked: Asked, filters: Mapping[str, str | None], limit: int, cursor: str | None
) -> Answer:
    chosen = {name: value for name, value in filters.items() if value is not None}
    if "type" in chosen:
        known_type(chosen["type"])
    after = None if cursor is None else _cursor(cursor)
    async with opened(asked, "job list") as database:
        found = await JobQueue(database).find(chosen, after=after, limit=limit + 1)
        now_ms = database.server_clock.now_ms()
    jobs = found[:limit]
    more = str(jobs[-1].id) if len(found) > limit else None
    facts = {"items": [job_facts(job) for job in jobs], "next_cursor": more}
    if not jobs:
        return Answer(facts, "no job is like that" if chosen or cursor else NONE_YET)
    rows = [_row(job, now_ms) for job in jobs]
    notes = [f"there are more: --cursor {more}"] if more and not asked.json else []
    return Answer(facts, table(_HEADINGS, rows), notes)


async def shown(asked: Asked, job_id: str) -> Answer:
    async with opened(asked, "job show") as database:
        job = await JobQueue(database).get(job_id)
        runs = await RunHistory(database).of(job.id, limit=RUNS_SHOWN)
        now_ms = database.server_clock.now_ms()
    facts = {**job_facts(job), "runs": [run_facts(run) for run in runs]}
    history = table(
        ("started (UTC)", "took", "outcome", "pages", "bars", "error"),
        [
            (
                shown_moment(run["started_at"]),
                f"{run['duration_ms']:,} ms",
                run["outcome"],
                f"{run['pages']:,}",
                f"{run['bars']:,}",
                run["error"],
            )
            for run in runs
        ],
        right="took pages bars",
    )
    return Answer(facts, Group(_details(job, now_ms), "", history if runs else "no runs yet"))


async def paused(asked: Asked, ids: Sequence[str]) -> Answer:
    return await _each(asked, ids, "pause", lambda queue: queue.pause, "paused")


async def resumed(asked: Asked, ids: Sequence[str]) -> Answer:
    return await _each(asked, ids, "resume", lambda queue: queue.resume, "resumed")


async def run(asked: Asked, ids: Sequence[str]) -> Answer:
    return await _each(asked, ids, "run", lambda queue: queue.run, "started")


async def removed(asked: Asked, ids: Sequence[str]) -> Answer:
    return await _each(asked, ids, "remove", lambda queue: queue.delete, "removed")


async def _each(
    asked: Asked,
    ids: Sequence[str],
    name: str,
    action: Callable[[JobQueue], Callable[[str], Awaitable[Job]]],
    done: str,
) -> Answer:
    """Does it to every job it can, and tells of the others."""
    jobs: list[Job] = []
    failures: list[CollectorError] = []
    async with opened(asked, f"job {name}") as database:
        act = action(JobQueue(database))
        for job_id in ids:
            try:
                jobs.append(await act(job_id))
            except CollectorError as error:
                failures.append(error)
        notes = await nobody_works(database) if name in ("run", "resume") and jobs else []
    if failures and not jobs:
        raise failures[0]
    notes = [*notes, *(str(error) for error in failures[1:])]
    words = "\n".join(f"{done} {job_words(job)}" for job in jobs)
    return Answer({"items": [job_facts(job) for job in jobs]}, words, notes, failures)


def job_words(job: Job) -> str:
    series = " ".join(filter(None, (job.exchange_id, job.symbol, job.timeframe)))
    return f"{job.type} of {series} ({job.id}, {state_words(job)})"


def state_words(job: Job) -> str:
    """Where the work is, and the operator's word where it says more."""
    if job.cursor.done:
        return "done"
    if job.status.value != "active":
        failed = job.state.value == "failed"
        return "failed" if failed and job.status.value == "paused" else job.status.value
    waiting = job.document.get("waiting_for")
    return f"{job.state.value} ({waiting})" if waiting else job.state.value


def _row(job: Job, now_ms: int) -> tuple[Any, ...]:
    waits = job.status.value == "active" and job.state.value != "running"
    reached = shown_moment(job.cursor.since_ms, seconds=False) if job.symbol else "-"
    return (
        job.id,
        job.exchange_id,
        job.type,
        job.symbol,
        job.timeframe,
        state_words(job),
        reached,
        shown_age(job.next_run_at, now_ms) if waits else "-",
    )


def _details(job: Job, now_ms: int) -> Any:
    stats, schedule = job.document.get("stats") or {}, job.schedule.to_document()
    every = schedule.get("expression") or (
        shown_span(schedule["interval_ms"]) if "interval_ms" in schedule else ""
    )
    rows = [
        ("job", job.id),
        ("what", " ".join(filter(None, (job.exchange_id, job.type, job.symbol, job.timeframe)))),
        ("status", job.status.value),
        ("state", state_words(job)),
        ("schedule", f"{schedule['mode']} {every}".strip()),
        ("next run", f"{shown_moment(job.next_run_at)} UTC, {shown_age(job.next_run_at, now_ms)}"),
        ("priority", job.priority),
        ("reached", f"{shown_moment(job.cursor.since_ms)} UTC"),
        ("until", f"{shown_moment(job.cursor.until_ms)} UTC" if job.cursor.until_ms else "open"),
        ("runs", f"{stats.get('runs', 0):,}, {stats.get('fail', 0):,} failed"),
        ("last run", shown_age(stats.get("last_run_at"), now_ms)),
        ("last error", stats.get("last_error")),
    ]
    return table(("", ""), rows)


def _cursor(text: str) -> ObjectId:
    if not ObjectId.is_valid(text):
        raise UsageMistake(f"--cursor {text!r} is not a `next_cursor` of an earlier answer")
    return ObjectId(text)
