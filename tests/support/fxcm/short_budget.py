"""FXCM's budget for history with every time a tenth of the real one: windows of 6 and 360 s."""

from __future__ import annotations

from dataclasses import replace

from collector.connectors.connector import Limits
from collector.connectors.window import Window
from collector.exchanges.fxcm.limits import hour_window, minute_window, spacing
from collector.exchanges.fxcm.quota_settings import QuotaSettings

TENTH = 10
QUOTA = QuotaSettings()


def shortened() -> Limits:
    minute, hour, apart = minute_window(QUOTA), hour_window(QUOTA), spacing(QUOTA)
    return Limits(
        minute.limit,
        minute.period_ms // TENTH,
        windows=(Window(hour.unit, hour.limit, hour.period_ms // TENTH, hour.priority_reserve),),
        priority_reserve=minute.priority_reserve,
        reserve_threshold=QUOTA.thresholds.reserve,
        spacing=replace(
            apart, intervals_ms={tf: ms // TENTH for tf, ms in apart.intervals_ms.items()}
        ),
    )
