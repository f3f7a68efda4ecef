"""What `collector connector` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.cli.actions.known import existing_connector
from collector.cli.connector_words import (
    budget_words,
    connector_facts,
    status_words,
    token_words,
    used_words,
)
from collector.cli.database import fleet_of
from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_age, shown_date, shown_moment
from collector.cli.output import Output, table
from collector.operations.connectors import check_exchange
from collector.operations.moments import moment_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.cli.verb import Asked

NONE_YET = "no connectors yet: collector connector add binance"


async def add(
    asked: Asked, exchange_id: str, figures: Mapping[str, Any], notes: str | None
) -> Output:
    """The exchange's connector, created if there is none, and the duties every exchange has."""
    check_exchange(exchange_id)
    async with fleet_of(asked, "connector add") as fleet:
        ensured = await fleet.connectors.ensure(exchange_id, figures, notes)
    connector = ensured.shown
    facts = {"created": ensured.made, "connector": connector_facts(connector)}
    if ensured.made:
        return Output(facts, f"added {exchange_id}: {budget_words(connector)}")
    given = any(value is not None for value in (*figures.values(), notes))
    hint = f"what was given here was not applied: collector connector set {exchange_id}"
    message = f"{exchange_id} was there already: {budget_words(connector)}"
    return Output(facts, message, [f"it keeps its limits and notes; {hint}"] if given else [])


async def changed(asked: Asked, exchange_id: str, changes: Mapping[str, Any]) -> Output:
    """Sets what was given; the rest stays."""
    if not changes:
        raise UsageMistake("nothing to set: give --rate-limit, --period or another option")
    async with fleet_of(asked, "connector set") as fleet:
        before = await existing_connector(fleet, exchange_id)
        connector = await fleet.connectors.change(exchange_id, changes)
    message = f"{exchange_id}: {budget_words(connector)}"
    was = budget_words(before)
    if was != budget_words(connector):
        message += f" (was {was})"
    return Output(connector_facts(connector), message)


async def listed(asked: Asked) -> Output:
    async with fleet_of(asked, "connector list") as fleet:
        found = await fleet.overview.status()
    rows = [
        (
            connector["exchange_id"],
            status_words(connector, found["at"]),
            used_words(connector),
            budget_words(connector),
            sum(connector["jobs"].values()),
            connector["notes"],
        )
        for connector in found["connectors"]
    ]
    items = [connector_facts(connector) for connector in found["connectors"]]
    headings = ("exchange", "status", "used", "limits", "jobs", "notes")
    shown = table(headings, rows, right="jobs") if rows else NONE_YET
    return Output({"items": items, "next_cursor": None}, shown)


async def shown(asked: Asked, exchange_id: str) -> Output:
    async with fleet_of(asked, "connector show") as fleet:
        connector = await existing_connector(fleet, exchange_id)
        now_ms = await fleet.overview.now_ms()
    rows = [
        ("exchange", connector["exchange_id"]),
        ("status", status_words(connector, now_ms)),
        ("limits", budget_words(connector)),
        ("used now", used_words(connector)),
        ("algorithm", connector["algorithm"]),
        ("circuit", connector["circuit"]["state"]),
        ("jobs at a time", connector["max_concurrent_jobs"] or "no limit"),
        ("tokens", token_words(connector)),
        ("jobs", f"{connector['jobs_count']:,}, {connector['active_jobs_count']:,} active"),
        ("last run", shown_age(shown_date(connector["last_job_run_time"]), now_ms)),
        ("made", f"{shown_moment(shown_date(connector['creation_date']))} UTC"),
        ("notes", connector["notes"]),
    ]
    return Output(connector_facts(connector), table(("", ""), rows))


async def paused(asked: Asked, exchange_id: str, until: str | None) -> Output:
    async with fleet_of(asked, "connector pause") as fleet:
        now_ms = await fleet.overview.now_ms()
        until_ms = None if until is None else moment_ms(until, now_ms, "ahead")
        await existing_connector(fleet, exchange_id)
        connector = await fleet.connectors.pause(exchange_id, until_ms)
    ends = f"until {shown_moment(until_ms)} UTC" if until_ms else "until it is resumed"
    return Output(connector_facts(connector), f"paused {exchange_id} {ends}")


async def resumed(asked: Asked, exchange_id: str) -> Output:
    async with fleet_of(asked, "connector resume") as fleet:
        await existing_connector(fleet, exchange_id)
        connector = await fleet.connectors.resume(exchange_id)
        now_ms = await fleet.overview.now_ms()
    message = f"resumed {exchange_id}"
    if connector["stop"] is not None:
        message = f"{exchange_id} is no longer paused, but {status_words(connector, now_ms)}"
    return Output(connector_facts(connector), message)


async def unblocked(asked: Asked, exchange_id: str) -> Output:
    async with fleet_of(asked, "connector unblock") as fleet:
        before = await existing_connector(fleet, exchange_id)
        connector = await fleet.connectors.unblock(exchange_id)
        now_ms = await fleet.overview.now_ms()
    message = f"unblocked {exchange_id}" if before["blocked"] else f"{exchange_id} was not blocked"
    if connector["stop"] is not None:
        message += f"; it is {status_words(connector, now_ms)}"
    return Output(connector_facts(connector), message)


async def removed(asked: Asked, exchange_id: str, cascade: bool) -> Output:
    """Refused while other jobs are active; the exchange's own duties are removed with it."""
    async with fleet_of(asked, "connector remove") as fleet:
        await existing_connector(fleet, exchange_id)
        connector = await fleet.connectors.remove(exchange_id, cascade=cascade)
    gone = connector["jobs_removed"]
    facts = {**connector_facts(connector), "jobs_removed": gone}
    return Output(facts, f"removed {exchange_id} and {gone} jobs; its data stays")
