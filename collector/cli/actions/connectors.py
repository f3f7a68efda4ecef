"""What `collector connector` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.cli.actions.known import existing_connector
from collector.cli.database import opened
from collector.cli.facts import connector_facts, stop_ends
from collector.cli.moments import shown_age, shown_moment
from collector.cli.output import Output, table
from collector.connectors.registry import ConnectorRegistry
from collector.durations import shown_span
from collector.operations import connected_jobs, connectors
from collector.operations.census import job_states
from collector.operations.connectors import check_exchange
from collector.operations.moments import moment_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.cli.verb import Asked
    from collector.connectors.connector import Connector
    from collector.connectors.window import Window

NONE_YET = "no connectors yet: collector connector add binance"


async def add(
    asked: Asked, exchange_id: str, figures: Mapping[str, Any], notes: str | None
) -> Output:
    """The exchange's connector, created if there is none, and the duties every exchange has."""
    check_exchange(exchange_id)
    async with opened(asked, "connector add") as database:
        ensured = await connectors.ensure(database, exchange_id, figures, notes)
        connector = ensured.connector
        facts = connector_facts(connector, database.server_clock.now_ms())
    if ensured.made:
        message, hints = f"added {exchange_id}: {budget_words(connector)}", []
    else:
        message = f"{exchange_id} was there already: {budget_words(connector)}"
        given = any(value is not None for value in (*figures.values(), notes))
        hints = ["it keeps its limits and notes: what was given here was not applied"]
        hints = hints if given else []
    return Output({"created": ensured.made, "connector": facts}, message, hints)


async def listed(asked: Asked) -> Output:
    async with opened(asked, "connector list") as database:
        found = await ConnectorRegistry(database).all()
        states = await job_states(database)
        now_ms = database.server_clock.now_ms()
    facts = {
        "items": [connector_facts(connector, now_ms) for connector in found],
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
        for connector in found
    ]
    headings = ("exchange", "status", "used", "limits", "jobs", "notes")
    return Output(facts, table(headings, rows, right="jobs") if rows else NONE_YET)


async def shown(asked: Asked, exchange_id: str) -> Output:
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
        ("tokens", token_words(connector)),
        ("jobs", f"{document['jobs_count']:,}, {document['active_jobs_count']:,} active"),
        ("last run", shown_age(round(ran.timestamp() * 1000) if ran else None, now_ms)),
        ("made", f"{shown_moment(round(connector.creation_date.timestamp() * 1000))} UTC"),
        ("notes", document.get("notes")),
    ]
    return Output(connector_facts(connector, now_ms), table(("", ""), rows))


async def paused(asked: Asked, exchange_id: str, until: str | None) -> Output:
    async with opened(asked, "connector pause") as database:
        registry = ConnectorRegistry(database)
        now_ms = database.server_clock.now_ms()
        until_ms = None if until is None else moment_ms(until, now_ms, "ahead")
        await existing_connector(registry, exchange_id)
        connector = await connectors.pause(database, exchange_id, until_ms)
    ends = f"until {shown_moment(until_ms)} UTC" if until_ms else "until it is resumed"
    return Output(connector_facts(connector, now_ms), f"paused {exchange_id} {ends}")


async def resumed(asked: Asked, exchange_id: str) -> Output:
    async with opened(asked, "connector resume") as database:
        registry = ConnectorRegistry(database)
        await existing_connector(registry, exchange_id)
        connector = await registry.resume(exchange_id)
        now_ms = database.server_clock.now_ms()
    message = f"resumed {exchange_id}"
    if connector.stopped(now_ms) is not None:
        message = f"{exchange_id} is no longer paused, but {status_words(connector, now_ms)}"
    return Output(connector_facts(connector, now_ms), message)


async def unblocked(asked: Asked, exchange_id: str) -> Output:
    async with opened(asked, "connector unblock") as database:
        registry = ConnectorRegistry(database)
        before = await existing_connector(registry, exchange_id)
        now_ms = database.server_clock.now_ms()
        connector = await registry.unblock(exchange_id)
    message = f"{exchange_id} was not blocked"
    if (before.document.get("blocked_until") or 0) > now_ms:
        message = f"unblocked {exchange_id}"
    if connector.stopped(now_ms) is not None:
        message += f"; it is {status_words(connector, now_ms)}"
    return Output(connector_facts(connector, now_ms), message)


async def removed(asked: Asked, exchange_id: str, cascade: bool) -> Output:
    """Refused while other jobs are active; the exchange's own duties are removed with it."""
    async with opened(asked, "connector remove") as database:
        await existing_connector(ConnectorRegistry(database), exchange_id)
        connector, gone = await connected_jobs.remove_connector(
            database, exchange_id, cascade=cascade
        )
        now_ms = database.server_clock.now_ms()
    facts = {**connector_facts(connector, now_ms), "jobs_removed": gone}
    return Output(facts, f"removed {exchange_id} and {gone} jobs; its data stays")


def status_words(connector: Connector, now_ms: int) -> str:
    """`active`, or what stops it and for how long."""
    stopped = connector.stopped(now_ms)
    if stopped is None:
        return "active"
    ends = stop_ends(connector, now_ms)
    why = connector.document.get("blocked_reason") if stopped.reason == "blocked" else None
    words = f"{stopped.reason} ({why})" if why else stopped.reason
    return f"{words}, ends {shown_age(ends, now_ms)}" if ends else words


def token_words(connector: Connector) -> str:
    """How many were granted, denied, and counted once more because their requests were late."""
    names = ("granted", "denied", "charged")
    totals = (connector.document.get(f"{name}_total") or 0 for name in names)
    return ", ".join(f"{total:,} {name}" for total, name in zip(totals, names, strict=True))


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
