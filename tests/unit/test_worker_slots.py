"""How a worker's slots are divided among exchanges that may hang."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workers.claiming import slots

EXCHANGES = [f"x{number}" for number in range(8)]


def test_one_exchange_alone_has_all_slots() -> None:
    assert slots("a", {}, {"a"}, 100) == 100
    assert slots("a", {"a": 100}, {"a"}, 100) == 0


def test_a_hanging_exchange_leaves_slots_for_the_other() -> None:
    assert slots("hangs", {"hangs": 75}, {"hangs", "works"}, 100) == 0
    assert slots("works", {"hangs": 75}, {"hangs", "works"}, 100) == 25


def test_what_nobody_else_needs_may_be_used() -> None:
    assert slots("a", {"b": 25}, {"a", "b"}, 100) == 75
    assert slots("a", {"b": 60}, {"a", "b"}, 100) == 40


def test_with_more_exchanges_than_slots_half_of_them_are_first_come_first_served() -> None:
    many = {f"x{number}" for number in range(110)}
    assert slots("x0", {}, many, 100) == 50
    assert slots("x0", {"x0": 50}, many, 100) == 0
    assert slots("x1", {"x0": 50}, many, 100) == 1
    assert slots("x1", {"x0": 50, "x1": 1}, many, 100) == 0


@given(
    order=st.lists(st.sampled_from(EXCHANGES), max_size=60),
    concurrency=st.integers(1, 40),
    contenders=st.integers(1, 8),
)
def test_whoever_hangs_everyone_else_gets_a_slot(
    order: list[str], concurrency: int, contenders: int
) -> None:
    """Exchanges take all they may, in any order, and give nothing back."""
    among = EXCHANGES[:contenders]
    held = dict.fromkeys(among, 0)
    for exchange in (name for name in order if name in held):
        held[exchange] += max(0, slots(exchange, held, among, concurrency))
        assert sum(held.values()) <= concurrency
    if concurrency >= 2 * contenders:
        for exchange in among:
            assert held[exchange] or slots(exchange, held, among, concurrency) >= 1
