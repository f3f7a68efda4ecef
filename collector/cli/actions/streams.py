"""What `collector add` does: creates everything that keeps some series complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group

from collector.cli.actions.connectors import budget_words
from collector.cli.actions.jobs import state_words
from collector.cli.actions.new_job import unknown_markets
from collector.cli.actions.workers import no_worker_note
from collector.cli.database import opened
from collector.cli.facts import job_facts
from collector.cli.failures import UsageMistake
from collector.cli.output import Output, table
from collector.operations.market_names import MarketNames, check_timeframe
from collector.operations.moments import moment_ms
from collector.operations.streams import SeriesRequest, add_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from collector.cli.verb import Asked
    from collector.jobs.job import Job
    from collector.operations.connectors import Ensured


async def add(
    asked: Asked,
    exchange_id: str,
    symbols: Sequence[str],
    timeframes: str,
    since: str | None,
    backfill: bool,
) -> Output:
    """Connector, duties and jobs of every symbol in every timeframe. Idempotent."""
    frames = split_timeframes(timeframes)
    async with opened(asked, "add") as database:
        now_ms = database.server_clock.now_ms()
        since_ms = None if since is None else moment_ms(since, now_ms)
        wanted = SeriesRequest(exchange_id, symbols, frames, since_ms, backfill)
        ensured, kept = await add_series(database, wanted, MarketNames(database))
        notes = [*kept.notes, *([] if kept.is_known else [unknown_markets(exchange_id)])]
        notes += await no_worker_note(database)
    jobs = kept.jobs
    facts = {
        "exchange_id": exchange_id,
        "connector_created": ensured.made,
        "created": [job_facts(job) for job, new in jobs if new],
        "existing": [job_facts(job) for job, new in jobs if not new],
        "notes": kept.notes,
    }
    return Output(facts, Group(_summary(ensured, jobs), "", _table(jobs)), notes)


def split_timeframes(text: str) -> list[str]:
    """`1m,1h` as a list without repeats. Raises UsageMistake."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageMistake("--timeframes names none: write 1m or 1m,1h")
    return list(dict.fromkeys(check_timeframe(name, field="timeframes") for name in names))


def _summary(ensured: Ensured, jobs: Sequence[tuple[Job, bool]]) -> str:
    connector = ensured.connector
    new = sum(1 for _, created in jobs if created)
    first = "connector made" if ensured.made else "connector was there"
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
