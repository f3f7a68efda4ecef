"""Whether one more call for history fits the budget. Pure: counts in, a reason out.

Below `thresholds.min_interval` only the two windows refuse. From there on calls of one pair keep a
distance, and from `thresholds.reserve` on a part of each window is kept for priority pairs: others
may use `limit - max(0, reserve - what priority pairs have used)`. Priority pairs are refused by the
windows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from collector.exchanges.quirks.spacing import load_level

if TYPE_CHECKING:
    from collector.exchanges.fxcm.quota_settings import QuotaSettings


class Reason(StrEnum):
    """Why a call was refused. All of them mean that the budget is spent, none is a fault."""

    MIN_INTERVAL = "min_interval"
    PRIORITY_RESERVE = "priority_reserve"
    MINUTE_QUOTA = "minute_quota"
    HOUR_QUOTA = "hour_quota"


class Use(NamedTuple):
    """What of a window is used: by all pairs, and by priority pairs."""

    calls: int
    priority: int


@dataclass(frozen=True, slots=True)
class Decision:
    """`wait_seconds` is when the same call would be allowed, if there is no other call before."""

    reason: Reason | None = None
    wait_seconds: float = 0.0

    @property
    def allowed(self) -> bool:
        return self.reason is None


def load(minute: Use, hour: Use, settings: QuotaSettings) -> float:
    """The fuller window's share; 1 is full."""
    return max(minute.calls / settings.max_calls_per_min, hour.calls / settings.max_calls_per_hour)


def is_loaded(minute: Use, hour: Use, settings: QuotaSettings, threshold: float) -> bool:
    """Whether the load has reached the threshold."""
    return minute.calls >= load_level(
        threshold, settings.max_calls_per_min
    ) or hour.calls >= load_level(threshold, settings.max_calls_per_hour)


def refusal(
    minute: Use, hour: Use, settings: QuotaSettings, *, priority: bool, too_soon: bool
) -> Reason | None:
    """The weightiest reason against a call. `too_soon`: its pair's interval has not passed."""
    if hour.calls >= settings.max_calls_per_hour:
        return Reason.HOUR_QUOTA
    if minute.calls >= settings.max_calls_per_min:
        return Reason.MINUTE_QUOTA
    if priority:
        return None
    thresholds = settings.thresholds
    if is_loaded(minute, hour, settings, thresholds.reserve) and (
        _is_kept(minute, settings.max_calls_per_min, settings.priority_reserve_per_min)
        or _is_kept(hour, settings.max_calls_per_hour, settings.priority_reserve_per_hour)
    ):
        return Reason.PRIORITY_RESERVE
    if too_soon and is_loaded(minute, hour, settings, thresholds.min_interval):
        return Reason.MIN_INTERVAL
    return None


def _is_kept(use: Use, limit: int, reserve: int) -> bool:
    """Whether all that is left of a window is kept for priority pairs."""
    return use.calls >= limit - max(0, reserve - use.priority)
