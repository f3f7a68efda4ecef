"""The life of a job, as one table.

`status` is set by the operator (may it run at all?), `state` is where the work is. Every statement
that changes a job names its transition here; docs/job-states.md draws the same table, and a test
compares the two with the statements.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    DELETED = "deleted"


class State(StrEnum):
    IDLE = "idle"
    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting_rate_limit"
    SUCCESS = "success"
    FAILED = "failed"


WAITING_TO_RUN = frozenset({State.IDLE, State.QUEUED, State.WAITING})
SETTLED = frozenset({State.SUCCESS, State.FAILED})
AT_REST = WAITING_TO_RUN | SETTLED
LIVE = frozenset({Status.ACTIVE, Status.PAUSED})


@dataclass(frozen=True, slots=True)
class JobTransition:
    """One arrow of the diagram. A target of None leaves that field unchanged."""

    name: str
    states_from: frozenset[State]
    state_to: State | None
    status_from: frozenset[Status]
    status_to: Status | None
    meaning: str

    def starts_from(self, state: State, status: Status) -> bool:
        return state in self.states_from and status in self.status_from


def _arrow(
    name: str,
    states_from: frozenset[State] | State,
    state_to: State | None,
    meaning: str,
    *,
    status_from: frozenset[Status] | Status = Status.ACTIVE,
    status_to: Status | None = None,
) -> JobTransition:
    states = frozenset({states_from}) if isinstance(states_from, State) else states_from
    statuses = frozenset({status_from}) if isinstance(status_from, Status) else status_from
    return JobTransition(name, states, state_to, statuses, status_to, meaning)


TRANSITIONS: tuple[JobTransition, ...] = (
    _arrow("lease", WAITING_TO_RUN, State.RUNNING, "a worker takes a due job"),
    _arrow("rescue", State.RUNNING, State.RUNNING, "another worker takes it: the lease ran out"),
    _arrow(
        "set_aside",
        State.RUNNING,
        State.FAILED,
        "it ran alone and its worker died, three times in a row",
        status_to=Status.PAUSED,
    ),
    _arrow(
        "again",
        State.RUNNING,
        State.IDLE,
        "done for now, the schedule or the job sets the next run",
    ),
    _arrow(
        "done",
        State.RUNNING,
        State.SUCCESS,
        "nothing left to do",
        status_to=Status.PAUSED,
    ),
    _arrow(
        "vanish",
        State.RUNNING,
        State.SUCCESS,
        "nothing left to do and nothing to keep (gap jobs)",
        status_to=Status.DELETED,
    ),
    _arrow("wait", State.RUNNING, State.WAITING, "no token: back when the window resets"),
    _arrow("retry", State.RUNNING, State.IDLE, "a passing fault: back after a pause that grows"),
    _arrow(
        "fail",
        State.RUNNING,
        State.FAILED,
        "a fault that only a person can mend",
        status_to=Status.PAUSED,
    ),
    _arrow(
        "give_back",
        State.RUNNING,
        State.QUEUED,
        "the worker drains: next in line, the attempt not counted",
    ),
    _arrow(
        "put_down",
        State.RUNNING,
        State.IDLE,
        "paused or deleted while it ran: the worker, or the sweeper after it, lets go",
        status_from=frozenset({Status.PAUSED, Status.DELETED}),
    ),
    _arrow(
        "pause",
        WAITING_TO_RUN,
        State.IDLE,
        "an operator stops it, or its symbol was delisted or renamed",
        status_to=Status.PAUSED,
    ),
    _arrow(
        "pause_running",
        State.RUNNING,
        None,
        "the same while it runs: the worker stops it after its current page",
        status_to=Status.PAUSED,
    ),
    _arrow(
        "resume",
        AT_REST,
        State.QUEUED,
        "an operator lets it run again, now, or its symbol is listed again",
        status_from=Status.PAUSED,
        status_to=Status.ACTIVE,
    ),
    _arrow(
        "resume_running",
        State.RUNNING,
        None,
        "an operator changed their mind before the worker noticed",
        status_from=Status.PAUSED,
        status_to=Status.ACTIVE,
    ),
    _arrow("run", WAITING_TO_RUN, State.QUEUED, "an operator wants it now"),
    _arrow(
        "run_again",
        State.RUNNING,
        None,
        "an operator wants it now while it runs: it runs once more when its run ends",
    ),
    _arrow(
        "run_settled",
        SETTLED,
        State.QUEUED,
        "an operator wants a finished or failed job once more",
        status_from=LIVE,
        status_to=Status.ACTIVE,
    ),
    _arrow(
        "extend",
        frozenset(State),
        State.QUEUED,
        "an earlier beginning is requested; a run under way loses its lease",
    ),
    _arrow(
        "extend_settled",
        SETTLED,
        State.QUEUED,
        "the same for a finished or failed job",
        status_from=Status.PAUSED,
        status_to=Status.ACTIVE,
    ),
    _arrow(
        "extend_paused",
        WAITING_TO_RUN | {State.RUNNING},
        State.IDLE,
        "the same for a job that an operator paused: it stays paused",
        status_from=Status.PAUSED,
    ),
    _arrow(
        "delete",
        frozenset(State),
        None,
        "an operator removes it; its unique key is free again",
        status_from=LIVE,
        status_to=Status.DELETED,
    ),
)

BY_NAME = {transition.name: transition for transition in TRANSITIONS}
