"""Cases of an exchange that lies, by number, and what becomes of each."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.support.lying_exchange import (
    LIES,
    DictCollector,
    LyingExchange,
    contradicted_and_false,
    market,
    with_halts,
    wrong_slots,
)

MARKETS = ("busy", "nearly", "sparse", "thin")
PAGES = (100, 300, 1000)
SHARES = (0.02, 0.1, 0.3)
_UNSETTLED = 20
"""The last slots, which no answer can settle because time ends there."""


def run_case(number: int) -> Counter[str]:
    """A history read from a lying exchange, then twice from the same one when it is honest.

    Every twelfth number has each kind of market, size of page and share of lies; every fifth one
    has a single kind of lie. Counts: `contradicted` are slots that are false although an honest
    answer spoke truly about them after the last lie, `false_after` and `open_after` are what is
    left after the honest readings. None of these three may ever be more than 0.
    """
    rng = np.random.default_rng(number)
    name, page = MARKETS[number % 4], PAGES[number % 3]
    slots, share = int(rng.integers(3_000, 12_000)), SHARES[(number // 4) % 3]
    kinds = LIES if number % 5 else (LIES[(number // 5) % len(LIES)],)
    has = with_halts(market(name, slots, rng), rng, number % 3)
    collector = DictCollector(LyingExchange(has, number, share, kinds), page, slots)
    collector.backfill(slots)
    collector.finish()
    until, log = slots - _UNSETTLED, collector.exchange.log
    bad, still_open = wrong_slots(collector, until)
    broken, by_lie = contradicted_and_false(collector, bad)
    counts = Counter(
        cases=1,
        slots=until,
        answers=len(log),
        lies=sum(kind is not None for _, kind in log),
        false=len(bad),
        open=still_open,
        contradicted=broken,
    )
    counts[f"false in {name}"] += len(bad)
    counts.update({f"false by {lie}": count for lie, count in by_lie.items()})
    collector.exchange.p = 0.0
    for _ in range(2):
        collector.read_again(slots)
        collector.finish()
    bad, still_open = wrong_slots(collector, until)
    counts.update(false_after=len(bad), open_after=still_open)
    return counts


def read_year(name: str, halts: int, page: int, seed: int = 7) -> DictCollector:
    """A year of minutes of an honest exchange, read to the end."""
    rng, slots = np.random.default_rng(seed), 525_600
    has = with_halts(market(name, slots, rng), rng, halts)
    collector = DictCollector(LyingExchange(has, seed), page, slots)
    collector.backfill(slots)
    collector.finish()
    return collector
