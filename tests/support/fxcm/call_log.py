"""The calls of the last hour, in two sliding windows."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from collector.durations import HOUR_MS, MINUTE_MS
from tests.support.fxcm.quota_rule import Use


@dataclass(frozen=True, slots=True)
class Counting:
    """How long a call counts: `lasts_ms` from the start of its grain, and then no longer.

    With a grain of 1 it is a sliding window to the millisecond. Windows that are shared through
    MongoDB keep calls in coarser grains, and count them for a margin longer.
    """

    lasts_ms: int
    grain_ms: int = 1

    def begins(self, call_ms: int) -> int:
        return call_ms - call_ms % self.grain_ms


class CallLog:
    """Times are whole milliseconds, so that a wait ends exactly when its call is allowed."""

    def __init__(self, minute: Counting | None = None, hour: Counting | None = None) -> None:
        self._minute = minute or Counting(MINUTE_MS)
        self._hour = hour or Counting(HOUR_MS)
        self._all: list[int] = []
        self._priority: list[int] = []

    def record(self, now_ms: int, *, priority: bool) -> None:
        """Calls are recorded in the order of their times."""
        for times in (self._all, self._priority):
            del times[: min(_over(times, now_ms, each) for each in (self._minute, self._hour))]
        self._all.append(now_ms)
        if priority:
            self._priority.append(now_ms)

    def minute(self, now_ms: int) -> Use:
        return self._use(now_ms, self._minute)

    def hour(self, now_ms: int) -> Use:
        return self._use(now_ms, self._hour)

    def changes_after(self, now_ms: int) -> list[int]:
        """Every later moment at which a call leaves a window, in order."""
        leaving: set[int] = set()
        for each in (self._minute, self._hour):
            counted = self._all[_over(self._all, now_ms, each) :]
            leaving.update(each.begins(call_ms) + each.lasts_ms for call_ms in counted)
        return sorted(leaving)

    def _use(self, now_ms: int, counting: Counting) -> Use:
        return Use(
            len(self._all) - _over(self._all, now_ms, counting),
            len(self._priority) - _over(self._priority, now_ms, counting),
        )


def _over(times: list[int], now_ms: int, counting: Counting) -> int:
    """How many of the calls, from the first on, count no longer."""
    return bisect_right(times, now_ms - counting.lasts_ms, key=counting.begins)
