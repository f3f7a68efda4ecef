"""The table of states, the page that draws it, and the statements that use it, held equal."""

from __future__ import annotations

import re
from pathlib import Path

from collector.jobs.states import TRANSITIONS, State, Status

PAGE = Path(__file__).parents[2] / "docs" / "job-states.md"
ROW = re.compile(r"^\| `(\w+)` \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$", re.M)


def words(cell: str) -> frozenset[str]:
    return frozenset(re.findall(r"`(\w+)`", cell))


def test_the_page_draws_exactly_the_transitions_of_the_code() -> None:
    drawn = {
        name: (words(states), words(state), words(statuses), words(status), meaning.strip())
        for name, states, state, statuses, status, meaning in ROW.findall(PAGE.read_text("utf-8"))
    }
    coded = {
        t.name: (
            frozenset(s.value for s in t.states_from),
            frozenset({t.state_to.value} if t.state_to else ()),
            frozenset(s.value for s in t.status_from),
            frozenset({t.status_to.value} if t.status_to else ()),
            t.meaning,
        )
        for t in TRANSITIONS
    }
    assert drawn == coded


def test_names_are_unique() -> None:
    assert len({t.name for t in TRANSITIONS}) == len(TRANSITIONS)


def test_every_state_can_be_reached_and_left() -> None:
    for state in State:
        assert any(t.state_to is state for t in TRANSITIONS), f"nothing leads to {state}"
        assert any(state in t.states_from and t.state_to is not state for t in TRANSITIONS)


def test_only_letting_go_moves_a_deleted_job() -> None:
    movers = [t.name for t in TRANSITIONS if Status.DELETED in t.status_from]
    assert movers == ["put_down"]
