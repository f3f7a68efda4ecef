"""The circuit gate's window: outcomes of the last seconds, in a deque of bounded size.

Outcomes of one second share a bin `(ts_sec, ok_count, err_count)`, so that a flood of them costs no
more memory than a trickle, and the rate is worked out from sums, so that none is left out.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_ENTRIES = 10_000
"""The hard limit of a window, whatever is configured."""


class Bin(NamedTuple):
    """Outcomes that are counted together."""

    ts_sec: int
    ok_count: int
    err_count: int


class EventWindow:
    """Outcomes of `window_sec` seconds. Times must not run backwards."""

    def __init__(
        self, window_sec: int, *, maxlen: int, bin_sec: int = 1, coalesce: bool = True
    ) -> None:
        """Without `coalesce` every outcome is an entry of its own."""
        self._window_sec = window_sec
        self._bin_sec = bin_sec
        self._coalesce = coalesce
        self._bins: deque[Bin] = deque(maxlen=max(1, min(maxlen, MOST_ENTRIES)))
        self.ok_count = 0
        self.err_count = 0

    @property
    def entries(self) -> int:
        return len(self._bins)

    @property
    def events(self) -> int:
        return self.ok_count + self.err_count

    @property
    def err_rate(self) -> float:
        return self.err_count / self.events if self.events else 0.0

    def add(self, now_sec: int, ok: bool) -> None:
        """Counts one outcome; drops the oldest entry when the window is full."""
        self.forget(now_sec)
        ts_sec = now_sec - now_sec % self._bin_sec
        bin_ = Bin(ts_sec, int(ok), int(not ok))
        if self._coalesce and self._bins and self._bins[-1].ts_sec == ts_sec:
            last = self._bins.pop()
            bin_ = Bin(ts_sec, last.ok_count + bin_.ok_count, last.err_count + bin_.err_count)
        elif len(self._bins) == self._bins.maxlen:
            self._leave(self._bins.popleft())
        self._bins.append(bin_)
        self.ok_count += int(ok)
        self.err_count += int(not ok)

    def forget(self, now_sec: int) -> None:
        """Drops entries older than the window."""
        oldest = now_sec - now_sec % self._bin_sec - self._window_sec
        while self._bins and self._bins[0].ts_sec <= oldest:
            self._leave(self._bins.popleft())

    def replace(self, bins: Iterable[Bin]) -> None:
        """Starts over with these, oldest first; with none, empty."""
        self._bins.clear()
        self._bins.extend(bins)
        self.ok_count = sum(each.ok_count for each in self._bins)
        self.err_count = sum(each.err_count for each in self._bins)

    def _leave(self, gone: Bin) -> None:
        self.ok_count -= gone.ok_count
        self.err_count -= gone.err_count
