"""What `collector add` does: everything that keeps some series whole, in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from collector.cli.actions.connectors import budget_words, ensured
from collector.cli.actions.jobs import state_words
from collector.cli.actions.known import known_exchange, known_series, known_timeframe
from collector.cli.actions.new_job import unknown_markets
from collector.cli.actions.workers import nobody_works
from collector.cli.answer import Answer, table
from collector.cli.facts import job_facts
from collector.cli.failures import UsageMistake
from collector.cli.moments import moment_ms
from collector.cli.opened import opened
from collector.jobs.queue import JobQueue
from collector.jobs.stream import stream_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from collector.cli.verb import Asked
    from collector.connectors.connector import Connector
    from collector.jobs.job import Job


async def add(
    asked: Asked,
    exchange_id: str,
    symbols: Sequence[str],
    timeframes: str,
    since: str | None,
    backfill: bool,
) -> Answer:
    """Connector, duties and jobs of every symbol in every timeframe. Idempotent."""
    known_exchange(exchange_id)
    frames = split_timeframes(timeframes)
    async with opened(asked, "add") as database:
        now_ms = database.server_clock.now_ms()
        since_ms = 0 if since is None else moment_ms(since, now_ms)
        if since_ms >= now_ms:
            raise UsageMistake(f"--since {since} is in the future")
        known = await known_series(database, exchange_id, symbols, frames)
        connector, made = await ensured(database, exchange_id)
        queue = JobQueue(database)
        jobs = [
            await queue.add(spec)
            for symbol in dict.fromkeys(symbols)
            for frame in frames
            for spec in stream_jobs(
                exchange_id, symbol, frame, now_ms=now_ms, since_ms=since_ms, backfill=backfill
            )
        ]
        notes = [] if known else [unknown_markets(exchange_id)]
        notes += await nobody_works(database)
    facts = {
        "exchange_id": exchange_id,
        "connector_created": made,
        "created": [job_facts(job) for job, new in jobs if new],
        "existing": [job_facts(job) for job, new in jobs if not new],
    }
    return Answer(facts, Group(_summary(connector, made, jobs), "", _table(jobs)), notes)


def split_timeframes(text: str) -> list[str]:
    """`1m,1h` as a list without repeats. Raises UsageMistake."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageMistake("--timeframes names none: write 1m or 1m,1h")
    return list(dict.fromkeys(known_timeframe(name) for name in names))


def _summary(connector: Connector, made: bool, jobs: Sequence[tuple[Job, bool]]) -> str:
    new = sum(1 for _, created in jobs if created)
    first = "connector made" if made else "connector was there"
    counts = f"{new} jobs made, {len(jobs) - new} were there"
    return f"{connector.exchange_id}: {first} ({budget_words(connector)}), {counts}"


def _table(jobs: Sequence[tuple[Job, bool]]) -> Table:
    return table(
        ("id", "symbol", "tf", "type", "state", ""),
        [
            (
                job.id,
                job.symbol,
                job.timeframe,
                job.type,
                state_words(job),
                "made" if new else "was there",
            )
            for job, new in jobs
        ],
    )
