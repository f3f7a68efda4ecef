"""The rule on gaps: at most 0.01% of a series may be missing (`quality.max_gap_pct`).

Unconfirmed slots do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import logs
from collector.errors import GapsExceeded
from collector.metrics import GAP_RATIO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.reports.coverage import Coverage

MAX_GAP_PCT = 0.0001

_log = logs.get("collector.reports")


def measured(coverage: Coverage) -> None:
    """Sets the series' gauge."""
    series = coverage.series
    labels = (series.exchange_id, series.symbol, series.timeframe.name)
    GAP_RATIO.labels(*labels).set(coverage.gaps_pct)


def within_limit(coverage: Coverage, max_gap_pct: float = MAX_GAP_PCT) -> bool:
    """Whether the series keeps the rule. Sets its gauge, and warns when it does not."""
    measured(coverage)
    if coverage.gaps_pct <= max_gap_pct:
        return True
    _log.warning(
        "gaps_over_limit",
        exchange=coverage.series.exchange_id,
        symbol=coverage.series.symbol,
        timeframe=coverage.series.timeframe.name,
        missing=coverage.missing,
        expected=coverage.expected,
        gaps_pct=coverage.gaps_pct,
        max_gap_pct=max_gap_pct,
        longest_gap_bars=coverage.longest_gap_bars,
        head_missing=coverage.head_missing,
        tail_missing=coverage.tail_missing,
        unconfirmed=coverage.unconfirmed,
    )
    return False


def gaps_error(over: Iterable[Coverage], max_gap_pct: float) -> GapsExceeded | None:
    """A message about the series that broke the rule; None when none did."""
    worst = sorted(over, key=lambda each: -each.gaps_pct)
    if not worst:
        return None
    first = worst[0]
    others = f" and {len(worst) - 1} more series" if len(worst) > 1 else ""
    return GapsExceeded(
        f"{first.series} lacks {first.missing:,} of {first.expected:,} bars"
        f" ({first.gaps_pct:.4%}, allowed {max_gap_pct:.4%}{_where(first)}){others}"
    )


def _where(coverage: Coverage) -> str:
    """How much of what is missing lies before and behind all that is stored."""
    ends = [(coverage.head_missing, "at its head"), (coverage.tail_missing, "at its tail")]
    return "".join(f", {count:,} {where}" for count, where in ends if count)
