"""Some hundred answers gone wrong. tests/acceptance has ten thousand."""

from __future__ import annotations

import pytest

from tests.support.dialects import DIALECTS, Dialect
from tests.support.mutated_answers import ends_of

EACH = 50


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
async def test_no_mutated_answer_becomes_a_wrong_bar_or_a_false_gap(dialect: Dialect) -> None:
    ends = await ends_of(dialect, EACH)
    assert sum(ends.values()) == EACH
    assert {"ExchangeUnavailable", "rejected", "the truth"} <= set(ends), "the changes say little"
