"""Heavy requests that starve, because lighter ones always fit before them.

A request that was denied for a whole period reserves the room it needs for two periods: lighter
ones have to leave it free (grant.py). Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.connectors.window import Window


@dataclass(frozen=True, slots=True)
class _Hunger:
    since: float
    period_ms: int


@dataclass(slots=True)
class Starving:
    """Since when requests of each weight have been denied, in one process."""

    _weights: dict[int, _Hunger] = field(default_factory=dict)

    def denied(self, weight: int, reason: str, windows: Iterable[Window], now: float) -> None:
        """A window had no room for it. The lightest ones never starve."""
        periods = [window.period_ms for window in windows if window.quota_name == reason]
        if weight > 1 and periods:
            self._weights.setdefault(weight, _Hunger(now, max(periods)))

    def granted(self, weight: int) -> None:
        self._weights.pop(weight, None)

    def save_ms(self, weight: int, now: float) -> int:
        """For how long to reserve room for a request of this weight; 0 when it does not starve."""
        hunger = self._weights.get(weight)
        if hunger is None or now - hunger.since < hunger.period_ms / 1000:
            return 0
        return 2 * hunger.period_ms
