"""One window inside the statement that grants tokens; grant.py puts the statement together.

The arithmetic is window.py's, in MongoDB's expression language: brought up to the server's now,
charged, compared with the waiting requests, and written back with what was granted.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.window import Window
    from collector.mongo.client import Document

Expression = Any


@dataclass(frozen=True, slots=True)
class Want:
    """One request that waits for a token."""

    weight: int = 1
    priority: bool = False
    key: str | None = None
    """What its connector spaces requests by, where it does."""


@dataclass(frozen=True, slots=True)
class GrantWindow:
    """One window inside the statement: its place, its figures, and what is charged to it."""

    at: int
    window: Window
    margin: Document | None
    """Its measured margin as it is stored, which the statement's filter requires to be this one."""
    sliding: bool
    charge: int
    watches_priority: bool = False
    """Counts what priority callers had even where nothing is kept for them."""

    @property
    def name(self) -> str:
        return f"_w{self.at}"

    @property
    def _counts_priority(self) -> bool:
        return self.watches_priority or self.window.priority_reserve > 0

    def moved(self) -> Expression:
        """The state brought up to `_now`, with `total`: what it has used by then."""
        moved = self._moved_sliding() if self.sliding else self._moved_fixed()
        live = {"$gt": [{"$ifNull": ["$$s.reported.until", 0]}, "$_now"]}
        reported = {
            "reported": "$$s.reported",
            "total": {"$max": ["$$m.counted", "$$s.reported.used"]},
        }
        # The venue's own count is used while it is fresh and larger than ours.
        with_total = {
            "$mergeObjects": ["$$m", {"$cond": [live, reported, {"total": "$$m.counted"}]}]
        }
        stored = {"$ifNull": [{"$arrayElemAt": ["$limiter.windows", self.at]}, {}]}
        return {
            "$let": {
                "vars": {"s": stored},
                "in": {"$let": {"vars": {"m": moved}, "in": with_total}},
            }
        }

    def _moved_fixed(self) -> Expression:
        period_ms, charge = self.window.period_ms, self.charge
        expired = {"$lte": [{"$ifNull": ["$$s.start", 0]}, {"$subtract": ["$_now", period_ms]}]}
        used = {"$add": ["$$s.used", charge]} if charge else "$$s.used"
        begun = {"start": "$_now", "used": charge, "counted": charge}
        going_on = {"start": "$$s.start", "used": used, "counted": used}
        if self._counts_priority:
            begun |= {"pcur": 0, "pcounted": 0}
            by_priority = {"$ifNull": ["$$s.pcur", 0]}
            going_on |= {"pcur": by_priority, "pcounted": by_priority}
        return {"$cond": [expired, begun, going_on]}

    def _moved_sliding(self) -> Expression:
        """The current bin, the sum of those before it that still count, and those bins.

        `sum` and `cur` are kept as numbers, so that a grant inside the current bin, which is nearly
        every grant of a busy exchange, touches no array. `k` is how many bins `sum` was made of:
        with another margin it is made again.
        """
        window = self.window
        current = {"$subtract": ["$_now", {"$mod": ["$_now", window.bin_ms]}]}
        just_ended = {"t": {"$ifNull": ["$$s.t", 0]}, "n": {"$ifNull": ["$$s.cur", 0]}}
        if self._counts_priority:
            just_ended["p"] = {"$ifNull": ["$$s.pcur", 0]}
        kept_from = {"$subtract": ["$$t", window.kept_bins * window.bin_ms]}
        kept = {
            "$filter": {
                "input": {"$concatArrays": [{"$ifNull": ["$$s.bins", []]}, [just_ended]]},
                "cond": {"$and": [{"$gte": ["$$this.t", kept_from]}, {"$gt": ["$$this.n", 0]}]},
            }
        }
        same = {"$and": [{"$eq": ["$$s.t", "$$t"]}, {"$eq": ["$$s.k", window.bins]}]}
        advanced = {"$let": {"vars": {"kept": kept}, "in": self._advanced()}}
        return {"$let": {"vars": {"t": current}, "in": {"$cond": [same, self._stayed(), advanced]}}}

    def _stayed(self) -> Document:
        charge = self.charge
        current = {"$add": ["$$s.cur", charge]} if charge else "$$s.cur"
        stayed: Document = {
            "t": "$$t",
            "cur": current,
            "sum": "$$s.sum",
            "bins": "$$s.bins",
            "counted": {"$add": ["$$s.sum", current]},
        }
        if self._counts_priority:
            by_priority = {"$ifNull": ["$$s.pcur", 0]}
            before = {"$ifNull": ["$$s.psum", 0]}
            stayed |= {"pcur": by_priority, "psum": before}
            stayed["pcounted"] = {"$add": [by_priority, before]}
        return stayed

    def _advanced(self) -> Expression:
        """A new bin begins; what was the current one is among the kept ones now.

        With another margin in the middle of a bin it is cut in two, which costs nothing.
        """
        window, charge = self.window, self.charge
        counts_from = {"$subtract": ["$$t", window.bins * window.bin_ms]}
        counting = {"$filter": {"input": "$$kept", "cond": {"$gte": ["$$this.t", counts_from]}}}
        advanced = {
            "t": "$$t",
            "cur": charge,
            "sum": {"$sum": "$$counting.n"},
            "bins": "$$kept",
            "counted": {"$add": [{"$sum": "$$counting.n"}, charge]},
        }
        if self._counts_priority:
            by_priority = {"$sum": "$$counting.p"}
            advanced |= {"pcur": 0, "psum": by_priority, "pcounted": by_priority}
        return {"$let": {"vars": {"counting": counting}, "in": advanced}}

    def prefix(self, wants: Sequence[Want], threshold: float) -> Expression:
        """How many of `wants`, from the first on, fit into the window."""
        if not wants:
            return 0
        window = self.window
        after = list(accumulate(window.cost(want.weight) for want in wants))
        left = {"$subtract": [window.limit, {"$add": [f"${self.name}.total", self._saved(wants)]}]}
        fitting = _fitting(after, left)
        priority = sum(want.priority for want in wants)
        if priority == len(wants) or not self._counts_priority:
            return fitting
        # A request may use the reserve only when it finds the window below the threshold.
        reserve = window.priority_reserve - (after[priority - 1] if priority else 0)
        kept = {"$max": [0, {"$subtract": [reserve, f"${self.name}.pcounted"]}]}
        unreserved = _fitting(after, {"$subtract": [left, kept]})
        before = [0, *after[:-1]]
        below = {"$subtract": [window.level(threshold), f"${self.name}.total"]}
        at_leisure = _fitting([each + 1 for each in before], below)
        others = {"$max": [priority, unreserved, at_leisure]}
        return {"$min": [fitting, others]}

    def _saved(self, wants: Sequence[Want]) -> Expression:
        """What has to be left for a heavy request that starves, unless it is one of ours."""
        saved = {"$cond": [saving(wants), "$limiter.saved.weight", 0]}
        return saved if self.window.unit == "weight" else {"$cond": [saving(wants), 1, 0]}

    def charged(self, wants: Sequence[Want] = ()) -> Expression:
        """The state after `_k` of the wants were let through; with none, after the charges."""
        totals = [0, *accumulate(self.window.cost(want.weight) for want in wants)]
        urgent = [want for want in wants if want.priority]
        by_priority = [0, *accumulate(self.window.cost(want.weight) for want in urgent)]
        by_priority += by_priority[-1:] * (len(totals) - len(by_priority))
        cost = _at_k(totals)
        moved = f"${self.name}"
        state: Document
        if self.sliding:
            state = {
                "t": f"{moved}.t",
                "k": self.window.bins,
                "w": self.window.bin_ms,
                "cur": {"$add": [f"{moved}.cur", cost]},
                "sum": f"{moved}.sum",
                "bins": f"{moved}.bins",
            }
        else:
            state = {"start": f"{moved}.start", "used": {"$add": [f"{moved}.used", cost]}}
        if self._counts_priority:
            state["pcur"] = {"$add": [f"{moved}.pcur", _at_k(by_priority)]}
            if self.sliding:
                state["psum"] = f"{moved}.psum"
        reported = {
            "used": {"$add": [f"{moved}.reported.used", cost]},
            "until": f"{moved}.reported.until",
            "at": f"{moved}.reported.at",
        }
        return {
            "unit": self.window.unit,
            "period_ms": self.window.period_ms,
            **({} if self.margin is None else {"margin": {"$literal": self.margin}}),
            **state,
            # A field whose value is missing is not written.
            "reported": {"$cond": [{"$gt": [f"{moved}.reported", None]}, reported, "$$REMOVE"]},
        }


def saving(wants: Sequence[Want]) -> Expression:
    """Whether room is reserved for a request of another weight than our first one's."""
    live = {"$gt": [{"$ifNull": ["$limiter.saved.until", 0]}, "$_now"]}
    return {"$and": [live, {"$ne": ["$limiter.saved.weight", wants[0].weight]}]}


def _fitting(costs: list[int], room: Expression) -> Expression:
    """How many of the running totals `costs` are within `room`."""
    if costs == list(range(1, len(costs) + 1)):
        return {"$max": [0, {"$min": [len(costs), room]}]}
    return {"$size": {"$filter": {"input": costs, "cond": {"$lte": ["$$this", room]}}}}


def _at_k(totals: list[int]) -> Expression:
    """The total of the first `_k`."""
    if len(totals) == 1:
        return 0
    if totals == list(range(len(totals))):
        return "$_k"
    return {"$arrayElemAt": [totals, "$_k"]}
