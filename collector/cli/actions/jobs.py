"""What `collector job` does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rich.console import Group

from collector.cli.actions.known import existing_connector, no_worker_note
from collector.cli.actions.named_job import job_ids
from collector.cli.actions.new_job import Wanted, request_of, unknown_markets
from collector.cli.database import fleet_of
from collector.cli.failures import UsageMistake
from collector.cli.job_words import job_words, state_words, whose
from collector.cli.moments import shown_age, shown_moment
from collector.cli.output import Output, table
from collector.durations import shown_span
from collector.errors import CollectorError
from collector.jobs.list_filters import STATE_WORDS
from collector.operations.new_job import known_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.cli.verb import Asked
    from collector.fleet.interface import Shown

RUNS_SHOWN = 10
NONE_YET = "no jobs yet: collector add binance BTC/USDT"
DONE = {"pause": "paused", "resume": "resumed", "run": "started", "remove": "removed"}
_CURSOR = re.compile(r"[0-9a-f]{24}")
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
    async with fleet_of(asked, "job add") as fleet:
        request = request_of(wanted, await fleet.overview.now_ms())
        known_type(wanted.type)
        await existing_connector(fleet, wanted.exchange_id)
        added = await fleet.jobs.add(request)
        notes = [*added.notes]
        notes += [] if added.is_known else [unknown_markets(wanted.exchange_id)]
        notes += await no_worker_note(fleet)
    message = f"{'added' if added.made else 'was there already:'} {job_words(added.shown)}"
    return Output({"created": added.made, "job": added.shown}, message, notes)


async def listed(
    asked: Asked, filters: Mapping[str, str | None], limit: int, cursor: str | None
) -> Output:
    chosen = {name: value for name, value in filters.items() if value is not None}
    if "type" in chosen:
        known_type(chosen["type"])
    if "state" in chosen:
        known_state(chosen["state"])
    if cursor is not None and _CURSOR.fullmatch(cursor) is None:
        raise UsageMistake(f"--cursor {cursor!r} is not a `next_cursor` of an earlier answer")
    async with fleet_of(asked, "job list") as fleet:
        page = await fleet.jobs.page(chosen, limit, cursor)
        now_ms = await fleet.overview.now_ms()
    jobs, more = page["items"], page["next_cursor"]
    facts = {"items": jobs, "next_cursor": more}
    if not jobs:
        return Output(facts, "no job is like that" if chosen or cursor else NONE_YET)
    rows = [_row(job, now_ms) for job in jobs]
    notes = [f"there are more: --cursor {more}"] if more and not asked.json else []
    return Output(facts, table(_HEADINGS, rows), notes)


async def shown(asked: Asked, words: Sequence[str]) -> Output:
    async with fleet_of(asked, "job show") as fleet:
        [job_id, *others] = await job_ids(fleet, words)
        if others:
            raise UsageMistake("one job at a time")
        job = await fleet.jobs.get(job_id)
        runs = await fleet.jobs.runs(job["id"], RUNS_SHOWN)
        now_ms = await fleet.overview.now_ms()
    facts = {**job, "runs": runs}
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


async def each(asked: Asked, words: Sequence[str], verb: str) -> Output:
    """Applies it to every job it can, and reports the others."""
    jobs: list[Shown] = []
    failures: list[CollectorError] = []
    async with fleet_of(asked, f"job {verb}") as fleet:
        for job_id in await job_ids(fleet, words):
            try:
                jobs.append(await fleet.jobs.change(verb, job_id))
            except CollectorError as error:
                failures.append(error)
        notes = await no_worker_note(fleet) if verb in ("run", "resume") and jobs else []
    if failures and not jobs:
        raise failures[0]
    notes = [*notes, *(str(error) for error in failures[1:])]
    lines = "\n".join(f"{DONE[verb]} {job_words(job)}" for job in jobs)
    return Output({"items": jobs}, lines, notes, failures)


def known_state(word: str) -> str:
    """The word itself. Raises UsageMistake for one that no job can be in."""
    if word not in STATE_WORDS:
        raise UsageMistake(f"--state {word!r} is none of {', '.join(STATE_WORDS)}")
    return word


def _row(job: Shown, now_ms: int) -> tuple[Any, ...]:
    waits = job["status"] == "active" and job["state"] != "running"
    return (
        job["id"],
        whose(job),
        job["type"],
        job["symbol"],
        job["timeframe"],
        state_words(job),
        shown_moment(_reached_ms(job), seconds=False) if job["symbol"] else "-",
        shown_age(job["next_run_at"], now_ms) if waits else "-",
        job["reason"],
    )


def _details(job: Shown, now_ms: int) -> Any:
    stats, schedule = job["stats"], job["schedule"]
    every = schedule.get("expression") or (
        shown_span(schedule["interval_ms"]) if "interval_ms" in schedule else ""
    )
    until_ms = job["cursor"].get("until_ms")
    about, due = (whose(job), job["type"], job["symbol"], job["timeframe"]), job["next_run_at"]
    rows = [
        ("job", job["id"]),
        ("what", " ".join(filter(None, about))),
        ("status", job["status"]),
        ("state", state_words(job)),
        ("schedule", f"{schedule['mode']} {every}".strip()),
        ("next run", f"{shown_moment(due)} UTC, {shown_age(due, now_ms)}"),
        ("priority", job["priority"]),
        ("reached", f"{shown_moment(_reached_ms(job))} UTC"),
        ("until", f"{shown_moment(until_ms)} UTC" if until_ms else "open"),
        ("runs", f"{stats['runs']:,}, {stats['fail']:,} failed"),
        ("last run", shown_age(stats["last_run_at"], now_ms)),
        ("last error", stats["last_error"]),
    ]
    return table(("", ""), rows)


def _reached_ms(job: Shown) -> int:
    return int(job["cursor"].get("since_ms") or 0)
