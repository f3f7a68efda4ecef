"""Ten thousand answers gone wrong, across the formats of all venues with quirks."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.dialects import DIALECTS
from tests.support.mutated_answers import ends_of

ANSWERS = 10_000


@pytest.mark.timeout(1_200)
async def test_ten_thousand_mutated_answers_leave_no_wrong_bar() -> None:
    each = -(-ANSWERS // len(DIALECTS))
    ends: Counter[str] = Counter()
    for dialect in DIALECTS.values():
        ends += await ends_of(dialect, each)
    print(f"{sum(ends.values())} mutated answers ended as: {dict(ends)}")
    assert sum(ends.values()) >= ANSWERS
    assert ends["rejected"] > ANSWERS / 10
    assert ends["ExchangeUnavailable"] > ANSWERS / 10
