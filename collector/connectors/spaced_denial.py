"""Why a request gets no token from a connector with spacing, and when it would. Pure.

Below the spacing's threshold only full windows refuse. From there on requests for one key keep a
distance, and from the reserve's threshold on a part of each window is kept for priority callers:
others may use `limit - max(0, reserve - what priority callers have used)`. Load is the share of the
fullest window. Priority callers are refused by full windows alone.

The same rules stand once more in grant_spacing.py, in MongoDB's expression language, because the
database decides; a property test holds the two equal to a third, plain version in the tests.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.connectors.connector import Connector
    from collector.connectors.grant_window import Want
    from collector.connectors.window import Usage, Window
    from collector.exchanges.quirks.spacing import Spacing

MIN_INTERVAL, PRIORITY_RESERVE = "min_interval", "priority_reserve"


@dataclass(frozen=True, slots=True)
class SpacedRequest:
    """One request and the state of its connector."""

    connector: Connector
    spacing: Spacing
    want: Want

    def refusal(self, now_ms: int) -> str | None:
        """The weightiest reason against the request at this moment: long windows come first."""
        both = list(zip(self.connector.all_windows, self.connector.usages(now_ms), strict=True))
        for window, use in sorted(both, key=lambda each: -each[0].period_ms):
            if use.used + window.cost(self.want.weight) > window.limit:
                return window.quota_name
        if self.want.priority:
            return None
        reserve_threshold = self.connector.limits.reserve_threshold
        if is_loaded(both, reserve_threshold) and any(self._is_kept(*each) for each in both):
            return PRIORITY_RESERVE
        if now_ms < self._interval_ends_ms() and is_loaded(both, self.spacing.threshold):
            return MIN_INTERVAL
        return None

    def fits_at(self, now_ms: int) -> int:
        """The first moment at which it is not refused, if no other request is granted meanwhile.

        From then on it stays allowed: windows only empty while nothing is granted.
        """
        if self.refusal(now_ms) is None:
            return now_ms
        drains = (moment for use in self.connector.usages(now_ms) for moment, _ in use.drains)
        later = {*drains, self._interval_ends_ms()}
        moments = sorted(moment for moment in later if moment > now_ms)
        first = bisect_left(moments, True, key=lambda moment: self.refusal(moment) is None)
        longest_ms = max(window.span_ms for window in self.connector.all_windows)
        return moments[first] if first < len(moments) else now_ms + longest_ms

    def _interval_ends_ms(self) -> int:
        spaced = (self.connector.document.get("limiter") or {}).get("spaced") or ()
        last = max((each["t"] for each in spaced if each["k"] == self.want.key), default=0)
        return int(last) + self.spacing.interval_ms(self.want.key)

    def _is_kept(self, window: Window, use: Usage) -> bool:
        kept = max(0, window.priority_reserve - use.by_priority)
        return use.used + window.cost(self.want.weight) > window.limit - kept


def is_loaded(both: list[tuple[Window, Usage]], threshold: float) -> bool:
    """Whether the fullest window has reached the threshold."""
    return any(use.used >= window.level(threshold) for window, use in both)
