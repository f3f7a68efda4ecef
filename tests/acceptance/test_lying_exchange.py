"""The rule of evidence against a lying exchange, for as long as there is time."""

from __future__ import annotations

import time
from collections import Counter

from tests.support.fleet import LONG
from tests.support.lies import run_case

SECONDS = 3_000 if LONG else 20
FIRST = 10_000
"""Other cases than the property test has."""


def test_no_contradicted_lie_survives() -> None:
    total: Counter[str] = Counter()
    began, number = time.monotonic(), FIRST
    while time.monotonic() - began < SECONDS:
        counts = run_case(number)
        left = {name: counts[name] for name in ("contradicted", "false_after", "open_after")}
        assert not any(left.values()), (number, left)
        total += counts
        number += 1
    print(dict(total))
    assert total["lies"] > 0
