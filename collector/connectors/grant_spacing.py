"""Spacing inside the statement that grants tokens; grant.py puts the statement together.

The rules are those of spaced_denial.py in MongoDB's expression language. Whether one request fits
depends on its key, so a connector with spacing is asked for one token at a time: a request that has
to keep its distance must not hold up those behind it.

State: `limiter.spaced`, a list of {k: key, t: when it was last granted}. Entries that are older
than the longest interval are dropped. It is a list because a key may have any character.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.grant_window import GrantWindow, Want
    from collector.exchanges.quirks.spacing import Spacing

Expression = Any
_SPACED = {"$ifNull": ["$limiter.spaced", []]}


@dataclass(frozen=True, slots=True)
class GrantSpacing:
    """One request against all windows of a connector with spacing."""

    spacing: Spacing
    reserve_threshold: float
    windows: Sequence[GrantWindow]
    want: Want | None

    def fits(self) -> Expression:
        """1 when the request may go, else 0."""
        if self.want is None:
            return 0
        refused = [self._exceeds(each, kept=False) for each in self.windows]
        if not self.want.priority:
            reserved = [self._exceeds(each, kept=True) for each in self.windows]
            refused.append({"$and": [self._loaded(self.reserve_threshold), {"$or": reserved}]})
            refused.append({"$and": [self._loaded(self.spacing.threshold), self._is_too_soon()]})
        return {"$cond": [{"$or": refused}, 0, 1]}

    def noted(self) -> Expression:
        """`limiter.spaced` after the request was granted."""
        since = {"$subtract": ["$_now", self.spacing.longest_ms]}
        recent: Expression = {"$gt": ["$$this.t", since]}
        if self.want is None or not self.spacing.interval_ms(self.want.key):
            return {"$filter": {"input": _SPACED, "cond": recent}}
        key = {"$literal": self.want.key}
        others = {"$and": [recent, {"$ne": ["$$this.k", key]}]}
        mine = [{"k": key, "t": "$_now"}]
        return {"$concatArrays": [{"$filter": {"input": _SPACED, "cond": others}}, mine]}

    def _exceeds(self, grant: GrantWindow, *, kept: bool) -> Expression:
        """Whether the window, less what it keeps for priority callers, has no room for it."""
        assert self.want is not None
        window, parts = grant.window, [f"${grant.name}.total", grant.window.cost(self.want.weight)]
        if kept and window.priority_reserve:
            reserve = {"$subtract": [window.priority_reserve, f"${grant.name}.pcounted"]}
            parts.append({"$max": [0, reserve]})
        return {"$gt": [{"$add": parts}, window.limit]}

    def _loaded(self, threshold: float) -> Expression:
        return {
            "$or": [
                {"$gte": [f"${each.name}.total", each.window.level(threshold)]}
                for each in self.windows
            ]
        }

    def _is_too_soon(self) -> Expression:
        assert self.want is not None
        interval_ms = self.spacing.interval_ms(self.want.key)
        if not interval_ms:
            return False
        mine = {"$eq": ["$$this.k", {"$literal": self.want.key}]}
        found = {"$filter": {"input": _SPACED, "cond": mine}}
        last = {"$max": {"$map": {"input": found, "in": "$$this.t"}}}
        # Without an earlier one the sum is null, which is less than any number.
        return {"$gt": [{"$add": [last, interval_ms]}, "$_now"]}
