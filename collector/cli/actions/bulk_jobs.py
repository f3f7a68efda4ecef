"""What `collector job pause|resume|run|remove` do, to named jobs or to many at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.cli.actions.jobs import DONE, each, known_state
from collector.cli.actions.known import no_worker_note
from collector.cli.database import fleet_of
from collector.cli.failures import UsageMistake
from collector.cli.output import Output
from collector.operations.new_job import known_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.cli.verb import Asked


@dataclass(frozen=True, slots=True)
class Many:
    """The options that name many jobs."""

    exchange_id: Sequence[str] | None = None
    type: Sequence[str] | None = None
    symbol: Sequence[str] | None = None
    state: Sequence[str] | None = None
    every: bool = False

    def filters(self) -> dict[str, Sequence[str]]:
        names = ("exchange_id", "type", "symbol", "state")
        return {name: given for name in names if (given := getattr(self, name))}


async def changed(asked: Asked, verb: str, words: Sequence[str], many: Many) -> Output:
    """To the named jobs, or to all that the options name."""
    filters = many.filters()
    if words and (filters or many.every):
        raise UsageMistake("name jobs, or give options that name many, not both")
    if not words and not filters and not many.every:
        raise UsageMistake("name a job, or use --exchange, --type, --symbol, --state or --all")
    if words:
        return await each(asked, words, verb)
    for name in filters.get("type", ()):
        known_type(name)
    for name in filters.get("state", ()):
        known_state(name)
    async with fleet_of(asked, f"job {verb}") as fleet:
        answer = await fleet.jobs.change_many(verb, filters, every=many.every)
        wants_worker = verb in ("run", "resume") and answer.changed
        notes = await no_worker_note(fleet) if wants_worker else []
    facts = {"matched": answer.matched, "changed": answer.changed, "refused": answer.refused}
    words_shown = f"{DONE[verb]} {answer.changed} of {answer.matched} jobs"
    return Output(facts, words_shown, [*notes, *answer.refused])
