"""FXCM's budget for history in the words of a connector: two windows, reserves and spacing.

The reserve of a window covers what the priority targets need in it, whatever is configured:
histories take all the rest, and one call a minute would not fetch the bars of four series.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from collector.durations import HOUR_MS, MINUTE_MS
from collector.exchanges.quirks.record import VenueWindow
from collector.exchanges.quirks.spacing import Spacing
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collector.exchanges.fxcm.quota_settings import QuotaSettings


CALLS_PER_BAR = 2
"""A call right after the close of a bar may come too early for it."""


def minute_window(quota: QuotaSettings) -> VenueWindow:
    """The connector's own window."""
    return _window(quota, quota.max_calls_per_min, MINUTE_MS, quota.priority_reserve_per_min)


def hour_window(quota: QuotaSettings) -> VenueWindow:
    """Its further window."""
    return _window(quota, quota.max_calls_per_hour, HOUR_MS, quota.priority_reserve_per_hour)


def _window(quota: QuotaSettings, limit: int, period_ms: int, least: int) -> VenueWindow:
    """`least` is the configured reserve. More than half of the window only that may keep."""
    frames = (Timeframe.parse(target.tf) for target in quota.priority_targets)
    bars = sum(max(1, period_ms // frame.ms) for frame in frames)
    reserve = max(least, min(CALLS_PER_BAR * bars, limit // 2))
    return VenueWindow("requests", limit, period_ms, reserve)


def spacing(quota: QuotaSettings) -> Spacing:
    intervals = {tf: round(s * 1000) for tf, s in quota.min_interval_by_tf.items()}
    return Spacing(
        MappingProxyType(intervals),
        frozenset(map(str, quota.priority_targets)),
        quota.thresholds.min_interval,
        quota.thresholds.warn,
        quota.thresholds.critical,
    )
