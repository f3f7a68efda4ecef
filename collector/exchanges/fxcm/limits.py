"""FXCM's budget for history in the words of a connector: two windows, reserves and spacing."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from collector.durations import HOUR_MS, MINUTE_MS
from collector.exchanges.quirks.record import VenueWindow
from collector.exchanges.quirks.spacing import Spacing

if TYPE_CHECKING:
    from collector.exchanges.fxcm.quota_settings import QuotaSettings


def minute_window(quota: QuotaSettings) -> VenueWindow:
    """The connector's own window."""
    reserve = quota.priority_reserve_per_min
    return VenueWindow("requests", quota.max_calls_per_min, MINUTE_MS, reserve)


def hour_window(quota: QuotaSettings) -> VenueWindow:
    """Its further window."""
    reserve = quota.priority_reserve_per_hour
    return VenueWindow("requests", quota.max_calls_per_hour, HOUR_MS, reserve)


def spacing(quota: QuotaSettings) -> Spacing:
    intervals = {tf: round(s * 1000) for tf, s in quota.min_interval_by_tf.items()}
    return Spacing(
        MappingProxyType(intervals),
        frozenset(map(str, quota.priority_targets)),
        quota.thresholds.min_interval,
        quota.thresholds.warn,
        quota.thresholds.critical,
    )
