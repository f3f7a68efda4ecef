"""What `collector connector` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.cli.actions.census import job_states
from collector.cli.actions.known import existing_connector, known_exchange
from collector.cli.answer import Answer, table
from collector.cli.facts import connector_facts, stop_ends
from collector.cli.failures import UsageMistake
from collector.cli.moments import moment_ms, shown_age, shown_moment, shown_span
from collector.cli.opened import opened
from collector.connectors.registry import ConnectorRegistry
from collector.connectors.venue_limits import venue_limits
from collector.errors import JobConflict
from collector.jobs.job import EXCHANGE_DUTIES, JobSpec
from collector.jobs.queue import JobQueue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.cli.verb import Asked
    from collector.connectors.connector import Connector
    from collector.connectors.window import Window
    from collector.mongo.client import Database

NONE_YET = "no connectors yet: collector connector add binance"


async def add(
    asked: Asked, exchange_id: str, figures: Mapping[str, Any], notes: str | None
) -> Answer:
    """The exchange's connector, made if there is none, and the duties every exchange has."""
    known_exchange(exchange_id)
    async with opened(asked, "connector add") as database:
        connector, made = await ensured(database, exchange_id, figures, notes)
        facts = connector_facts(connector, database.server_clock.now_ms())
    if made:
        said, hints = f"added {exchange_id}: {budget_words(connector)}", []
    else:
        said = f"{exchange_id} was there already: {budget_words(connector)}"
        given = any(value is not None for value in (*figures.values(), notes))
        hints = ["it keeps its limits and notes: what was given here was not applied"]
        hints = hints if given else []
    return Answer({"created": made, "connector": facts}, said, hints)


async def ensured(
    database: Database,
    exchange_id: str,
    figures: Mapping[str, Any] | None = None,
    notes: str | None = None,
) -> tuple[Connector, bool]:
    """The connector and its duties; whether the connector was made. Idempotent."""
    try:
        limits = venue_limits(exchange_id, figures)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
    connector, made = await ConnectorRegistry(database).ensure(exchange_id, limits, notes=notes)
    queue = JobQueue(database)
    for duty in EXCHANGE_DUTIES:
        await queue.add(JobSpec(exchange_id, duty))
    return connector, made


async def listed(asked: Asked) -> Answer:
    async with opened(asked, "connector list") as database:
        connectors = await ConnectorRegistry(database).all()
        states = await job_states(database)
        now_ms = database.server_clock.now_ms()
    facts = {
        "items": [connector_facts(connector, now_ms) for connector in connectors],
        "next_cursor": None,
    }
    rows = [
        (
            connector.exchange_id,
            status_words(connector, now_ms),
            used_words(connector, now_ms),
            budget_words(connector),
            sum(states.get(connector.exchange_id, {}).values()),
            connector.document.get("notes"),
        )
        for connector in connectors
    ]
    headings = ("exchange", "status", "used", "limits", "jobs", "notes")
    return Answer(facts, table(headings, rows, right="jobs") if rows else NONE_YET)


async def shown(asked: Asked, exchange_id: str) -> Answer:
    async with opened(asked, "connector show") as database:
        connector = await existing_connector(ConnectorRegistry(database), exchange_id)
        now_ms = database.server_clock.now_ms()
    document = connector.document
    ran = document.get("last_job_run_time")
    rows = [
        ("exchange", connector.exchange_id),
        ("status", status_words(connector, now_ms)),
        ("limits", budget_words(connector)),
        ("used now", used_words(connector, now_ms)),
        ("algorithm", connector.limits.algorithm),
        ("circuit", connector.circuit(now_ms).state.name),
        ("jobs at a time", connector.limits.max_concurrent_jobs or "no limit"),
        ("tokens", f"{document['granted_total']:,} granted, {document['denied_total']:,} denied"),
        ("jobs", f"{document['jobs_count']:,}, {document['active_jobs_count']:,} active"),
        ("last run", shown_age(round(ran.timestamp() * 1000) if ran else None, now_ms)),
        ("made", f"{shown_moment(round(connector.creation_date.timestamp() * 1000))} UTC"),
        ("notes", document.get("notes")),
    ]
    return Answer(connector_facts(connector, now_ms), table(("", ""), rows))


async def paused(asked: Asked, exchange_id: str, until: str | None) -> Answer:
    async with opened(asked, "connector pause") as database:
        registry = ConnectorRegistry(database)
        now_ms = database.server_clock.now_ms()
        until_ms = None if until is None else moment_ms(until, now_ms, "ahead")
        if until_ms is not None and until_ms <= now_ms:
            raise UsageMistake(f"--until {until} is in the past")
        await existing_connector(registry, exchange_id)
        connector = await registry.pause(exchange_id, until_ms=until_ms)
    ends = f"until {shown_moment(until_ms)} UTC" if until_ms else "until somebody resumes it"
    return Answer(connector_facts(connector, now_ms), f"paused {exchange_id} {ends}")


async def resumed(asked: Asked, exchange_id: str) -> Answer:
    async with opened(asked, "connector resume") as database:
        registry = ConnectorRegistry(database)
        await existing_connector(registry, exchange_id)
        connector = await registry.resume(exchange_id)
        now_ms = database.server_clock.now_ms()
    said = f"resumed {exchange_id}"
    if connector.stopped(now_ms) is not None:
        said = f"{exchange_id} is no longer paused, but {status_words(connector, now_ms)}"
    return Answer(connector_facts(connector, now_ms), said)


async def removed(asked: Asked, exchange_id: str, cascade: bool) -> Answer:
    """Refused while somebody's jobs are active; the exchange's own duties go with it."""
    async with opened(asked, "connector remove") as database:
        registry, queue = ConnectorRegistry(database), JobQueue(database)
        await existing_connector(registry, exchange_id)
        busy = await queue.active_of_exchange(exchange_id, besides=EXCHANGE_DUTIES)
        if busy and not cascade:
            raise JobConflict(
                f"{exchange_id} has {busy} active job{'s' if busy != 1 else ''}: "
                "pause or remove them first, or use --cascade"
            )
        # Jobs first: dying in between leaves a connector, and the verb can be repeated.
        own = None if cascade else EXCHANGE_DUTIES
        gone = await queue.delete_of_exchange(exchange_id, only_types=own)
        connector = await registry.remove(exchange_id)
        now_ms = database.server_clock.now_ms()
    facts = {**connector_facts(connector, now_ms), "jobs_removed": gone}
    return Answer(facts, f"removed {exchange_id} and {gone} jobs; its data stays")


def status_words(connector: Connector, now_ms: int) -> str:
    """`active`, or what stops it and for how long."""
    stopped = connector.stopped(now_ms)
    if stopped is None:
        return "active"
    ends = stop_ends(connector, now_ms)
    why = connector.document.get("blocked_reason") if stopped.reason == "blocked" else None
    words = f"{stopped.reason} ({why})" if why else stopped.reason
    return f"{words}, ends {shown_age(ends, now_ms)}" if ends else words


def used_words(connector: Connector, now_ms: int) -> str:
    """How full its fullest window is."""
    usages = zip(connector.all_windows, connector.usages(now_ms), strict=True)
    window, counted = max(usages, key=lambda pair: pair[1].used / pair[0].limit)
    share = counted.used / window.limit
    return f"{counted.used:,}/{window.limit:,} {window.unit} ({share:.0%})"


def budget_words(connector: Connector) -> str:
    return ", ".join(_window_words(window) for window in connector.all_windows)


def _window_words(window: Window) -> str:
    length = f"{window.period_ms} ms" if window.period_ms % 1000 else shown_span(window.period_ms)
    return f"{window.limit:,} {window.unit} / {length}"
