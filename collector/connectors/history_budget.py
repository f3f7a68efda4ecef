"""The budget of a connector with spacing, as heartbeats and the API show it. Pure.

The shape is that of `context.history` in FXCM's heartbeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.grant_window import Want
from collector.connectors.spaced_denial import is_loaded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.connectors.connector import Connector
    from collector.connectors.window import Usage, Window
    from collector.exchanges.quirks.spacing import Spacing

SHOWN_SKIPS = 10
DENIAL_LASTS_MS = 60_000
"""A poller that still runs into the quota is refused again long before."""


def history_budget(connector: Connector, now_ms: int) -> dict[str, Any] | None:
    """What is used and what was refused; None for a connector without spacing."""
    spacing = connector.limits.spacing
    if spacing is None:
        return None
    both = list(zip(connector.all_windows, connector.usages(now_ms), strict=True))
    ordered = sorted(both, key=lambda each: each[0].period_ms)
    (minute, minute_use), (hour, hour_use) = ordered[0], ordered[-1]
    budget = connector.document.get("budget") or {}
    return {
        "calls_60s": minute_use.used,
        "calls_3600s": hour_use.used,
        "limit_60s": minute.limit,
        "limit_3600s": hour.limit,
        "load_ratio": round(max(use.used / window.limit for window, use in both), 4),
        "throttle_state": _throttle_state(spacing, both, budget, now_ms),
        "next_slot_seconds": _next_slot_seconds(connector, now_ms),
        "last_denied_reason": budget.get("last_denied_reason"),
        "priority": {
            "targets": sorted(spacing.first),
            "reserve_per_min": minute.priority_reserve,
            "reserve_per_hour": hour.priority_reserve,
            "calls_60s": minute_use.by_priority,
            "calls_3600s": hour_use.by_priority,
        },
        "skipped_polls": _most_skipped(budget),
    }


def _throttle_state(
    spacing: Spacing,
    both: list[tuple[Window, Usage]],
    budget: Mapping[str, Any],
    now_ms: int,
) -> str:
    """`warn` and `critical` only follow a request that a quota has refused, by the load now."""
    denied_ms = budget.get("quota_denied_at")
    if denied_ms is None or now_ms - denied_ms >= DENIAL_LASTS_MS:
        return "ok"
    if is_loaded(both, spacing.critical):
        return "critical"
    return "warn" if is_loaded(both, spacing.warn) else "ok"


def _next_slot_seconds(connector: Connector, now_ms: int) -> float:
    """When a request without priority may go, for a series without recent requests; 0 is now."""
    return (connector.denial(Want(), now_ms).retry_at_ms - now_ms) / 1000


def _most_skipped(budget: Mapping[str, Any]) -> list[dict[str, Any]]:
    skipped = (budget.get("skipped") or {}).values()
    ordered = sorted(skipped, key=lambda each: (-each["count"], each["symbol"], each["tf"]))
    names = ("symbol", "tf", "count", "last_reason", "by_reason")
    return [{name: each[name] for name in names} for each in ordered[:SHOWN_SKIPS]]
