"""Columns of 256-bit integers against Python's own."""

from __future__ import annotations

import random

import numpy as np
import pytest

from collector.history import uint256
from collector.history.uint256 import LIMIT

HARD = [0, 1, (1 << 64) - 1, 1 << 64, (1 << 128) - 1, 1 << 192, LIMIT - 2, LIMIT - 1]


def some(count: int, seed: int, limbs: int = 4) -> list[int]:
    """Numbers that share limbs with each other, so that the next limb has to decide."""
    chance = random.Random(seed)
    words = [0, 1, (1 << 64) - 1, chance.getrandbits(64)]
    return [sum(chance.choice(words) << 64 * at for at in range(limbs)) for _ in range(count)]


@pytest.mark.parametrize("values", [HARD, some(100, 1), some(100, 2, limbs=2), [5], []])
def test_a_column_is_its_integers(values: list[int]) -> None:
    column = uint256.from_ints(values)
    assert uint256.to_ints(column) == values
    array = uint256.to_arrow(column)
    assert [int.from_bytes(each, "big") for each in array.to_pylist()] == values
    assert (
        uint256.to_ints(uint256.from_arrow(array.slice(len(values) // 2)))
        == (values[len(values) // 2 :])
    )
    assert uint256.to_ints(uint256.trimmed(column)) == values


@pytest.mark.parametrize("limbs", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_groups_have_the_sums_and_extremes_of_their_rows(limbs: int, seed: int) -> None:
    values = some(300, seed, limbs)
    starts = np.array([0, *sorted(random.Random(seed).sample(range(1, 300), 20))])
    column = uint256.trimmed(uint256.from_ints(values))
    ends = [*starts[1:].tolist(), 300]
    groups = [values[first:end] for first, end in zip(starts.tolist(), ends, strict=True)]
    assert uint256.to_ints(uint256.group_most(column, starts)) == [max(each) for each in groups]
    assert uint256.to_ints(uint256.group_least(column, starts)) == [min(each) for each in groups]
    sums, over = uint256.group_sums(column, starts)
    assert uint256.to_ints(sums) == [sum(each) % LIMIT for each in groups]
    assert over.tolist() == [sum(each) >= LIMIT for each in groups]


def test_pairs_are_added_and_compared_with_carries() -> None:
    ones, others = HARD * 8, [each for each in HARD for _ in HARD]
    one, other = uint256.from_ints(ones), uint256.from_ints(others)
    total, over = uint256.add(one, other)
    both = list(zip(ones, others, strict=True))
    assert uint256.to_ints(total) == [(a + b) % LIMIT for a, b in both]
    assert over.tolist() == [a + b >= LIMIT for a, b in both]
    assert uint256.less(one, other).tolist() == [a < b for a, b in both]
