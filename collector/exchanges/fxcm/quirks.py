"""FXCM's limits and page sizes."""

from __future__ import annotations

from collector.exchanges.fxcm.failures import EXCHANGE_ID
from collector.exchanges.fxcm.limits import hour_window, minute_window, spacing
from collector.exchanges.fxcm.quota_settings import QuotaSettings
from collector.exchanges.quirks.record import Quirks

LARGEST_PAGE = 5000
"""Bars of one call. The SDK fetches them a few hundred at a time and must not take minutes."""
_BUDGET = QuotaSettings()

QUIRKS = Quirks(
    exchange_id=EXCHANGE_ID,
    # FXCM publishes no figures; these are what its users found to be safe for history.
    requests=minute_window(_BUDGET),
    windows=(hour_window(_BUDGET),),
    spacing=spacing(_BUDGET),
    reserve_threshold=_BUDGET.thresholds.reserve,
    largest_page=LARGEST_PAGE,
    default_page=LARGEST_PAGE,
)
