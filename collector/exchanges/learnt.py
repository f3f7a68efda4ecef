"""How far an answer speaks, and what answers teach of a venue that nobody has described.

A page is a statement about every slot from where it was asked, the empty ones too, so a venue that
answers less than it was asked for makes gaps that are none. Where the venue's ways are written
down the limits of its pages are known. Where they are not, an answer is believed from its first
row on, or up to its last one, whenever it may have been cut there; what it left open is asked for
again. Order and the running bar need no learning: pages are sorted, and what has ended is judged
by the venue's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.exchanges.port import BarPage

_SMALLEST_PAGE = 50
"""Fewer bars than this in a row are a quiet market, not a venue's largest page."""
_LIVE_EDGE_BARS = 2


def from_first_row(page: BarPage) -> BarPage:
    """The page of a venue that drops the oldest rows when it cuts an answer."""
    times = _times(page)
    if not times or times[0] <= page.asked_from_ms:
        return page
    return replace(page, asked_from_ms=times[0])


@dataclass(slots=True)
class Learnt:
    """What the answers about one kind of market have shown so far."""

    page: int
    """The most bars that come in one answer."""
    exclusive: bool | None = None
    """Whether the bar that opens exactly at `since` is left out; None as long as nobody knows."""
    _cut_at: int | None = None

    def since(self, since_ms: int) -> int:
        """What to ask for to be given the bar at `since_ms`."""
        return max(0, since_ms - 1) if self.exclusive else since_ms

    def read(self, page: BarPage, bar_ms: int, now_ms: int) -> BarPage:
        """The page, claiming no more than its answer surely says."""
        if not _times(page):
            return page
        return self._beginning(self._end(page, bar_ms, now_ms), bar_ms, now_ms)

    def _beginning(self, page: BarPage, bar_ms: int, now_ms: int) -> BarPage:
        times = _times(page)
        if times[0] <= page.asked_from_ms:
            self.exclusive = bool(self.exclusive)
            return page
        if self.exclusive is None and times[0] == page.asked_from_ms + bar_ms:
            self.exclusive = True
            return from_first_row(page)
        full = len(page.rows) >= page.asked_limit
        latest = times[-1] >= now_ms - _LIVE_EDGE_BARS * bar_ms
        return from_first_row(page) if full and latest else page

    def _end(self, page: BarPage, bar_ms: int, now_ms: int) -> BarPage:
        times, count = _times(page), len(page.rows)
        window_end = page.asked_from_ms + page.asked_limit * bar_ms
        if count >= page.asked_limit or times[-1] + bar_ms >= min(window_end, now_ms - bar_ms):
            return page
        unbroken = times[-1] == page.asked_from_ms + (count - 1) * bar_ms
        if unbroken and count >= _SMALLEST_PAGE:
            if self._cut_at == count:
                self.page = count
            self._cut_at = count
        return replace(page, asked_limit=count)


def _times(page: BarPage) -> list[int]:
    return [int(row[0]) for row in page.rows if row[0] is not None]
