"""Who goes first when not all can."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from collector.priority import OLDEST_EVERY, in_order


def test_the_more_urgent_goes_first_and_every_eighth_turn_is_the_oldests() -> None:
    urgent, old = [f"live {n}" for n in range(20)], [f"history {n}" for n in range(20)]
    order = in_order(urgent + old, old + urgent, 0)
    assert order[:17] == [*urgent[:7], old[0], *urgent[7:14], old[1], urgent[14]]


def test_the_turns_go_on_from_one_choice_to_the_next() -> None:
    urgent, old = ["live"] * 1, ["history"]
    firsts = [in_order(urgent + old, old + urgent, turn)[0] for turn in range(2 * OLDEST_EVERY)]
    assert firsts.count("history") == 2


def test_one_who_has_waited_longest_is_chosen_though_he_is_not_among_the_most_urgent() -> None:
    assert in_order(["a"], ["z", "a"], OLDEST_EVERY - 1) == ["z"]


@given(
    urgencies=st.lists(st.integers(0, 3), max_size=40),
    turn=st.integers(0, 100),
    known=st.integers(0, 40),
)
def test_everyone_gets_one_turn_and_equals_are_served_in_order(
    urgencies: list[int], turn: int, known: int
) -> None:
    by_age = list(enumerate(urgencies))
    by_priority = sorted(by_age, key=lambda each: each[1])
    order = in_order(by_priority, by_age[:known], turn)
    assert sorted(order) == by_age
    for urgency in set(urgencies):
        mine = [each for each in order if each[1] == urgency]
        assert mine == sorted(mine)
