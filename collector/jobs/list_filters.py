"""What filters of job lists mean: exact values, several of a field, and the words that users read.

A finished or failed job also has the status `paused`, which is not what a person calls paused.
Lists, bulk changes and printed tables use these words in one sense:

    done      finished, nothing left to do
    paused    stopped by a person, neither finished nor failed
    failed    stopped by a fault that needs a person
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.jobs.states import LIVE, SETTLED, State, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.jobs.job import Job
    from collector.mongo.client import Document

DONE, PAUSED = "done", "paused"
STATE_WORDS = (*(state.value for state in State), DONE, PAUSED)
"""What a filter of states may say."""


def values(filters: Mapping[str, str | Sequence[str]]) -> dict[str, list[str]]:
    """Every filter as the list of values of which any will do."""
    return {
        name: [given] if isinstance(given, str) else list(dict.fromkeys(given))
        for name, given in filters.items()
    }


def states_of(words: Sequence[str]) -> dict[str, list[str]]:
    """The states that the words name, each with the statuses it may have."""
    found: dict[str, set[str]] = {}
    for word in words:
        for state, statuses in _meaning(word).items():
            found.setdefault(state, set()).update(statuses)
    return {state: sorted(statuses) for state, statuses in found.items()}


def condition(given: Mapping[str, Sequence[str]]) -> Document:
    """The query for these values; live jobs unless a status is given."""
    asked: Document = {
        name: chosen[0] if len(chosen) == 1 else {"$in": list(chosen)}
        for name, chosen in given.items()
        if name != "state"
    }
    asked.setdefault("status", {"$in": sorted(LIVE)})
    if "state" in given:
        # Deleted jobs keep their state: with a status of its own the words mean the state alone.
        with_status = "status" not in given
        asked["$or"] = [
            {"state": state, **({"status": {"$in": statuses}} if with_status else {})}
            for state, statuses in states_of(given["state"]).items()
        ]
    return asked


def is_finished(job: Job) -> bool:
    """Whether it has nothing left to do: running it once more is a decision about that one job."""
    return job.cursor.done or (job.state is State.SUCCESS and job.status is Status.PAUSED)


def _meaning(word: str) -> dict[str, frozenset[Status]]:
    if word == DONE:
        return {State.SUCCESS.value: frozenset({Status.PAUSED})}
    if word == PAUSED:
        return {state.value: frozenset({Status.PAUSED}) for state in State if state not in SETTLED}
    return {State(word).value: LIVE}
