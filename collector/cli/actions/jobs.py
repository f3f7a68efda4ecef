"""What `collector job` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bson import ObjectId
from rich.console import Group

from collector.cli.actions.known import existing_connector
from collector.cli.actions.new_job import Wanted, request_of, unknown_markets
from collector.cli.actions.workers import no_worker_note
from collector.cli.database import opened
from collector.cli.facts import job_facts, run_facts
from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_age, shown_moment
from collector.cli.output import Output, table
from collector.connectors.registry import ConnectorRegistry
from collector.durations import shown_span
from collector.errors import CollectorError
from collector.jobs.list_filters import STATE_WORDS
from collector.jobs.queue import JobQueue
from collector.jobs.runs import RunHistory
from collector.operations.job_words import reason_words
from collector.operations.market_names import MarketNames
from collector.operations.named_job import job_ids
from collector.operations.new_job import add_job, known_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from collector.cli.verb import Asked
    from collector.jobs.job import Job
    from collector.mongo.client import Database

RUNS_SHOWN = 10
NONE_YET = "no jobs yet: collector add binance BTC/USDT"
_HEADINGS = (
    "id",
    "exchange",
    "type",
    "symbol",
    "tf",
    "state",
    "reached (UTC)",
    "next run",
    "reason",
)


async def add(asked: Asked, wanted: Wanted) -> Output:
    async with opened(asked, "job add") as database:
        request = request_of(wanted, database.server_clock.now_ms())
        known_type(wanted.type)
        await existing_connector(ConnectorRegistry(database), wanted.exchange_id)
        added = await add_job(database, request, MarketNames(database))
        notes = [] if added.note is None else [added.note]
        notes += [] if added.is_known else [unknown_markets(wanted.exchange_id)]
        notes += await no_worker_note(database)
    message = f"{'added' if added.made else 'was there already:'} {job_words(added.job)}"
    return Output({"created": added.made, "job": job_facts(added.job)}, message, notes)


async def listed(
    asked: Asked, filters: Mapping[str, str | None], limit: int, cursor: str | None
) -> Output:
    chosen = {name: value for name, value in filters.items() if value is not None}
    if "type" in chosen:
        known_type(chosen["type"])
    if "state" in chosen:
        known_state(chosen["state"])
    after = None if cursor is None else _cursor(cursor)
    async with opened(asked, "job list") as database:
        found = await JobQueue(database).find(chosen, after=after, limit=limit + 1)
        now_ms = database.server_clock.now_ms()
    jobs = found[:limit]
    more = str(jobs[-1].id) if len(found) > limit else None
    facts = {"items": [job_facts(job) for job in jobs], "next_cursor": more}
    if not jobs:
        return Output(facts, "no job is like that" if chosen or cursor else NONE_YET)
    rows = [_row(job, now_ms) for job in jobs]
    notes = [f"there are more: --cursor {more}"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows), notes)


async def shown(asked: Asked, words: Sequence[str]) -> Output:
    async with opened(asked, "job show") as database:
        [job_id, *others] = await job_ids(database, words)
        if others:
            raise UsageMistake("one job at a time")
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
    return Output(facts, Group(_details(job, now_ms), "", history if runs else "no runs yet"))


async def each(
    asked: Asked,
    words: Sequence[str],
    name: str,
    action: Callable[[Database, str], Awaitable[Job]],
    done: str,
) -> Output:
    """Applies it to every job it can, and reports the others."""
    jobs: list[Job] = []
    failures: list[CollectorError] = []
    async with opened(asked, f"job {name}") as database:
        for job_id in await job_ids(database, words):
            try:
                jobs.append(await action(database, job_id))
            except CollectorError as error:
                failures.append(error)
        notes = await no_worker_note(database) if name in ("run", "resume") and jobs else []
    if failures and not jobs:
        raise failures[0]
    notes = [*notes, *(str(error) for error in failures[1:])]
    words = "\n".join(f"{done} {job_words(job)}" for job in jobs)
    return Output({"items": [job_facts(job) for job in jobs]}, words, notes, failures)


def known_state(word: str) -> str:
    """The word itself. Raises UsageMistake for one that no job can be in."""
    if word not in STATE_WORDS:
        raise UsageMistake(f"--state {word!r} is none of {', '.join(STATE_WORDS)}")
    return word


def job_words(job: Job) -> str:
    series = " ".join(filter(None, (job.exchange_id, job.symbol, job.timeframe)))
    return f"{job.type} of {series} ({job.id}, {state_words(job)})"


def state_words(job: Job) -> str:
    """Where the work is, and the operator's status where it adds something."""
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
        reason_words(job),
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
