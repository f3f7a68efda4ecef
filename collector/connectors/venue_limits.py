"""The limits a connector starts with: the venue's own figures, any of them overridden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.connector import Limits
from collector.connectors.window import Window
from collector.exchanges.registry import quirks_for

if TYPE_CHECKING:
    from collections.abc import Mapping


def venue_limits(exchange_id: str, overrides: Mapping[str, Any] | None = None) -> Limits:
    """Raises ConfigError for an unknown exchange, ValueError for a limit that makes no sense.

    `overrides` are fields of `Limits`; None leaves the venue's figure.
    """
    quirks = quirks_for(exchange_id)
    figures: dict[str, Any] = {
        "rate_limit": quirks.requests.limit,
        "rate_limit_period_ms": quirks.requests.period_ms,
        "windows": tuple(
            Window(w.unit, w.limit, w.period_ms, w.priority_reserve) for w in quirks.windows
        ),
        "priority_reserve": quirks.requests.priority_reserve,
        "spacing": quirks.spacing,
    }
    if quirks.reserve_threshold is not None:
        figures["reserve_threshold"] = quirks.reserve_threshold
    given = {name: value for name, value in (overrides or {}).items() if value is not None}
    return Limits(**{**figures, **given})
