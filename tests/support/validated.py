"""A stored series for the tests of validation, and what its report finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.reports.expected import Expected
from collector.reports.validation import Demands
from tests.support.bars import at, span

if TYPE_CHECKING:
    from collector.market.candles import CandleBatch
    from collector.market.series import Series
    from collector.reports.validation import SeriesReport
    from collector.store.store import Store

NOW = at(10_000)
QUIET = Demands(samples=0)
"""No bars are compared with the exchange."""
AS_STORED = Expected(None, None)


def keep(store: Store, series: Series, batch: CandleBatch, first: int, end: int) -> None:
    store.append_page(series, batch, span(first, end), fence=1, known_at=1_000)


def failed(report: SeriesReport) -> dict[str, int]:
    return {name: check.count for name, check in report.checks.items() if not check.ok}
