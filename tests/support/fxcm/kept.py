"""The budget for history as the connector's windows have it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector.exchanges.fxcm.limits import hour_window, minute_window

if TYPE_CHECKING:
    from collector.exchanges.fxcm.quota_settings import QuotaSettings


def with_windows(quota: QuotaSettings) -> QuotaSettings:
    """With the reserves of the windows in place of the configured ones."""
    return replace(
        quota,
        priority_reserve_per_min=minute_window(quota).priority_reserve,
        priority_reserve_per_hour=hour_window(quota).priority_reserve,
    )
