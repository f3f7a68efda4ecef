"""What answers teach about a venue, because its documented figures may be wrong.

How far an answer reaches depends on whether it was cut, and where. A recorded page size may be
wrong, may have changed, or may hold for one endpoint only, so an answer counts as whole only when
it has fewer rows than were requested, and fewer than came in one answer before. That costs an extra
request now and then at the start, and no slot is taken for empty because a venue sent less than
documented. Order and the running bar need no learning: pages are sorted, and the venue's clock
decides what has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from collector.exchanges.port import BarPage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from collector.exchanges.ccxt.page import Sent

_SMALLEST_PAGE = 50
"""No venue's largest page is smaller: fewer rows than this are a quiet market, not a cut."""
_FAR_FROM_NOW_BARS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """A request: `size` bars of `timeframe`, each `bar_ms` long, from a time on."""

    since_ms: int
    size: int
    timeframe: str
    bar_ms: int


@dataclass(slots=True)
class Learnt:
    """What the answers about one kind of market have shown so far."""

    exclusive: bool | None = None
    """Whether the bar that opens exactly at `since` is left out; None while unknown."""
    begins: bool = False
    """Whether a cut answer begins at `since`, and what is missing is at its end."""
    _most: dict[tuple[str, str], int] = field(default_factory=dict)
    """The most rows that came in one answer, by endpoint and timeframe."""

    def since(self, since_ms: int) -> int:
        """The start to request in order to receive the bar at `since_ms`."""
        return max(0, since_ms - 1) if self.exclusive else since_ms

    def read(self, asked: Question, sent: Sent, now_ms: int) -> BarPage:
        """The page of an answer, with what is known about its reach."""
        times = sent.rows.times
        self._learn(asked, times, now_ms)
        kept = sent.rows.page(asked.since_ms, asked.size)
        wanted = len(times) - int(np.searchsorted(times, asked.since_ms))
        place = sent.endpoint, asked.timeframe
        count, most = len(sent.rows), self._most.get(place, 0)
        self._most[place] = max(count, most)
        full = wanted > asked.size or count >= min(asked.size, max(most, _SMALLEST_PAGE))
        return BarPage(
            rows=kept,
            asked_from_ms=asked.since_ms,
            asked_limit=asked.size,
            server_ms=sent.server_ms,
            first_ms=int(times[0]) if len(times) else None,
            last_ms=int(times[-1]) if len(times) else None,
            full=full,
            begins=self.begins,
        )

    def _learn(self, asked: Question, times: NDArray[np.int64], now_ms: int) -> None:
        if not len(times):
            return
        if times[0] <= asked.since_ms:
            self.exclusive = bool(self.exclusive)
        elif self.exclusive is None and times[0] == asked.since_ms + asked.bar_ms:
            self.exclusive = True
        # As many rows as requested, from exactly the requested time, and over a longer time than
        # that many bars take: the venue counted rows from `since`, neither from now nor in a
        # window.
        behind = asked.since_ms + (asked.size + 1) * asked.bar_ms
        counted = len(times) == asked.size and times[0] == asked.since_ms and times[-1] >= behind
        if counted and times[-1] < now_ms - _FAR_FROM_NOW_BARS * asked.bar_ms:
            self.begins = True
