"""What priority means: who goes first when not all can. Pure.

It decides which due job is claimed, which run keeps its slot and which request gets the next
token, and it means the same everywhere: the lower number goes first. Every eighth turn goes to
whoever has waited longest, whatever its priority, so that nothing starves behind work that never
ends.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

T = TypeVar("T", bound="Hashable")

OLDEST_EVERY = 8
"""Every so many turns the one that has waited longest goes first."""


def is_for_the_oldest(turn: int) -> bool:
    """Whether this turn, counted from 0, belongs to the one that has waited longest."""
    return turn % OLDEST_EVERY == OLDEST_EVERY - 1


def in_order(by_priority: Sequence[T], by_age: Sequence[T], turn: int) -> list[T]:
    """As many as `by_priority` has, in the order in which they get the turns from `turn` on.

    `by_age` are candidates too, the longest waiting first; most of them are in both.
    """
    taken: dict[T, None] = {}
    urgent, old = iter(by_priority), iter(by_age)
    while len(taken) < len(by_priority):
        oldest_first = is_for_the_oldest(turn + len(taken))
        queue = chain(old, urgent) if oldest_first else urgent
        taken[next(item for item in queue if item not in taken)] = None
    return list(taken)
