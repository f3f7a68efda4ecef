"""What four workers use of the budgets of Binance, Bybit and Kraken, by the venues' journals."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.harness import Figure
from tests.support.venue_budgets import WORKERS, budgets_used

if TYPE_CHECKING:
    from tests.bench.harness import Bench


async def run(bench: Bench) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="collector-venues-") as root:
        async with bench.database() as database:
            uses = await budgets_used(database, bench.uri, Path(root))
    bench.show(
        f"three venues at once, {WORKERS} workers",
        ["", "share of the budget", "fullest period", "allowed", "violations"],
        [
            [use.exchange_id, f"{use.share:.3f}", use.fullest, use.limit, str(use.violations)]
            for use in uses
        ],
    )
    figures = []
    for use in uses:
        figures.append(Figure(f"venues.{use.exchange_id}", use.share, at_least=0.95))
        figures.append(
            Figure(f"venues.{use.exchange_id}: violations", use.violations, "", at_most=0)
        )
    return figures
