"""The rule of evidence against an exchange that lies in twelve ways.

1. A lie that an honest answer contradicts is gone.
2. After two honest readings what is believed is the truth, and nothing is open.
3. What asking twice costs over a year, nobody lying, in requests beyond one per page.

The same for fifty minutes: `make chaos` (tests/acceptance/test_lying_exchange.py).
"""

from __future__ import annotations

import pytest

from tests.support.examples import ALL, examples
from tests.support.lies import read_year, run_case
from tests.support.lying_exchange import (
    DictCollector,
    LyingExchange,
    market,
    np_rng,
    wrong_slots,
)

NEVER = ("contradicted", "false_after", "open_after")
YEARS = {
    ("busy", 3): 0.01,
    ("nearly", 3): 0.02,
    ("sparse", 3): 0.055,
    ("thin", 3): 0.055,
}


@pytest.mark.parametrize("number", range(examples(72)))
def test_a_contradicted_lie_is_gone_and_two_honest_readings_are_the_truth(number: int) -> None:
    counts = run_case(number)
    assert {name: counts[name] for name in NEVER} == dict.fromkeys(NEVER, 0)
    assert counts["false"] <= 0.07 * counts["slots"]


@pytest.mark.parametrize(("name", "halts"), YEARS if ALL else [("busy", 3)])
def test_a_year_costs_little_more_than_a_request_per_page(name: str, halts: int) -> None:
    collector = read_year(name, halts, page=1000)
    pages = -(-525_600 // 1000)
    bad, still_open = wrong_slots(collector, 525_580)
    assert (len(bad), still_open) == (0, 0)
    assert collector.requests <= pages * (1 + YEARS[name, halts])


@pytest.mark.parametrize("name", ["busy", "sparse"])
@pytest.mark.parametrize("kind", ["empty", "stale", "late", "block"])
def test_an_outage_of_twelve_minutes_leaves_nothing_false(name: str, kind: str) -> None:
    """A series that is followed live. In a busy market nothing is false at any moment."""
    start, end = 3_000, 4_000 if ALL else 3_200
    middle = (start + end) // 2
    exchange = LyingExchange(market(name, end, np_rng(3)), 3, outages=[(middle, middle + 12, kind)])
    collector = DictCollector(exchange, 1000, start)
    collector.backfill(start)
    collector.finish()
    worst = 0
    for minute in range(start, end):
        collector.poll(minute)
        worst = max(worst, len(wrong_slots(collector, minute)[0]))
    assert worst <= (0 if name == "busy" else 5)
    collector.owe(start, end - 20)
    collector.finish()
    bad, still_open = wrong_slots(collector, end - 20)
    assert (len(bad), still_open) == (0, 0)
