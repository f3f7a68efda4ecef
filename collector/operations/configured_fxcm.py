"""FXCM's budget from the section `fxcm`: the fields of its connector that the section names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.connectors.window import Window
from collector.exchanges.fxcm.limits import hour_window, minute_window, spacing
from collector.exchanges.fxcm.quota_settings import INTERVAL_KEY

if TYPE_CHECKING:
    from collector.exchanges.fxcm.settings import FxcmSettings

_PER_MIN, _PER_HOUR = "history_max_calls_per_min", "history_max_calls_per_hour"
_TARGETS = "history_priority_targets"
_NAMED_BY = {
    "rate_limit": {_PER_MIN},
    "priority_reserve": {"history_priority_reserve_per_min", _PER_MIN, _TARGETS},
    "windows": {"history_priority_reserve_per_hour", _PER_HOUR, _TARGETS},
    "reserve_threshold": {"history_load_thresholds"},
    "spacing": {"history_load_thresholds", _TARGETS},
}
"""Keys of `fxcm.stream` by the field of the connector that they define."""


def named(section: FxcmSettings) -> dict[str, Any]:
    """The fields of `Limits` that the section defines; others keep FXCM's defaults."""
    quota, given = section.stream.quota, section.stream.model_fields_set
    minute, hour = minute_window(quota), hour_window(quota)
    fields = {
        "rate_limit": minute.limit,
        "priority_reserve": minute.priority_reserve,
        "windows": (Window(hour.unit, hour.limit, hour.period_ms, hour.priority_reserve),),
        "reserve_threshold": quota.thresholds.reserve,
        "spacing": spacing(quota),
    }
    is_spaced = any(name.startswith(INTERVAL_KEY) for name in given)
    return {
        name: value
        for name, value in fields.items()
        if _NAMED_BY[name] & given or (name == "spacing" and is_spaced)
    }
