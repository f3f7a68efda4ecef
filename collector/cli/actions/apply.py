"""What `collector plan` and `collector apply` do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.cli.actions.known import NO_WORKER
from collector.cli.database import opened
from collector.cli.output import Output
from collector.jobs.live_workers import LiveWorkers
from collector.operations.applied_settings import apply_settings, plan_settings
from collector.operations.settings_plan import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.cli.verb import Asked
    from collector.operations.settings_plan import SettingsChange

NOTHING = "nothing to change: everything is as the settings file asks"
_DONE = {
    Action.CREATE: "created",
    Action.CHANGE: "changed",
    Action.EXTEND: "extended",
    Action.RESUME: "resumed",
    Action.PAUSE: "paused",
    Action.DELETE: "deleted",
}


async def planned(asked: Asked, prune: bool) -> Output:
    async with opened(asked, "plan") as database:
        plan = await plan_settings(database, asked.settings(), prune=prune)
    facts = _facts(plan.changes, plan.notes)
    lines = [f"would {each.action} {_words(each)}" for each in plan.changes]
    return Output(facts, "\n".join(lines) or NOTHING, plan.notes)


async def applied(asked: Asked, prune: bool) -> Output:
    async with opened(asked, "apply") as database:
        plan = await apply_settings(database, asked.settings(), prune=prune)
        idle = plan.changes and not await LiveWorkers(database).count()
    notes = [*plan.notes, *([NO_WORKER] if idle else [])]
    lines = change_lines(plan.changes)
    return Output(_facts(plan.changes, plan.notes), "\n".join(lines) or NOTHING, notes)


def change_lines(changes: Sequence[SettingsChange]) -> list[str]:
    """What was done, a line each."""
    return [f"{_DONE[each.action]} {_words(each)}" for each in changes]


def _words(change: SettingsChange) -> str:
    details = ", ".join(change.details)
    return f"{change.subject}: {details}" if details else change.subject


def _facts(changes: Sequence[SettingsChange], notes: Sequence[str]) -> dict[str, Any]:
    return {"changes": [_change_facts(each) for each in changes], "notes": list(notes)}


def _change_facts(change: SettingsChange) -> dict[str, Any]:
    kind, symbol, timeframe = change.about
    return {
        "action": change.action.value,
        "exchange_id": change.exchange_id,
        "type": kind,
        "symbol": symbol,
        "timeframe": timeframe,
        "job_id": None if change.job is None else str(change.job.id),
        "details": list(change.details),
    }
