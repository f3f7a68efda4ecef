"""Which window of a market's trades to ask for next, at a venue that tells them newest first.

Of a window with more trades than an answer holds only the newest come, and a stretch has to be
settled from its beginning on. So a full answer settles nothing yet. It says how close together the
trades are: when a few more pages should bring the rest, they are asked for one after another, and
the window is told when the last one is there; otherwise a shorter window is asked for instead.
It grows again where there is little, up to where the many were. Windows are whole seconds, as these
venues count them, and a second has as many pages as it needs.

Several jobs may walk through the history of one market, each somewhere else, so a pace is
remembered together with where it was learnt, and each walk goes on with the one nearest to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.errors import ExchangeUnavailable
from collector.exchanges.port import TradePage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.trade import Trade

SHORTEST_MS = 1_000
FIRST_MS = 3_600_000
LONGEST_MS = 30 * 86_400_000
MOST_PAGES = 8
"""Of one window, unless it is the shortest."""
_HOPEFUL = 4
"""Where trades end close together they may have begun far apart."""
_WANTED_PAGES = 2
_LONGER_AT_MOST = 8
_REMEMBERED = 16
_HELD = 4


@dataclass(frozen=True, slots=True)
class TradeWindow:
    """The trades of `[from_ms, to_ms)`, and which page of them. Without an end: up to now."""

    from_ms: int
    to_ms: int | None
    page: int = 1

    @property
    def is_shortest(self) -> bool:
        return self.to_ms is not None and self.to_ms - self.from_ms <= SHORTEST_MS


@dataclass(frozen=True, slots=True)
class _Pace:
    """How long the next window is. One that goes on behind `full_ms` has too many trades."""

    length_ms: int = FIRST_MS
    full_ms: int = 0

    def end(self, from_ms: int) -> int:
        end_ms = from_ms + self.length_ms
        return min(end_ms, self.full_ms) if from_ms < self.full_ms else end_ms


@dataclass(frozen=True, slots=True)
class _Begun:
    """A window whose newest pages are there: the trades on them, and the page that is next."""

    trades: tuple[Trade, ...]
    next: TradeWindow


class TradeWindows:
    """The windows of one market. It asks nobody; whoever does tells it what came."""

    def __init__(self, page: int) -> None:
        """`page` is how many trades an answer holds at most."""
        self._page = page
        self._paces: dict[int, _Pace] = {}
        self._begun: dict[int, _Begun] = {}

    def next(self, since_ms: int, settled_ms: int) -> TradeWindow:
        """What to ask for from `since_ms` on. After `settled_ms` trades may still be told."""
        from_ms = _second(since_ms)
        begun = self._begun.get(from_ms)
        if begun is not None:
            return begun.next
        to_ms = self._pace_at(from_ms).end(from_ms)
        return TradeWindow(from_ms, to_ms if to_ms <= settled_ms else None)

    def read(
        self,
        window: TradeWindow,
        told: Sequence[Trade],
        *,
        count: int,
        since_ms: int,
        settled_ms: int,
    ) -> TradePage:
        """What an answer of `count` trades settles; `told` are all of them, oldest first."""
        whole = self._whole(window, tuple(told), count >= self._page, settled_ms)
        if whole is None:
            # From here on even the shortest window would not be settled.
            is_latest = window.from_ms + SHORTEST_MS > settled_ms
            return TradePage((), since_ms, since_ms, is_latest=is_latest)
        end_ms = settled_ms if window.to_ms is None else window.to_ms
        to_ms = max(since_ms, min(end_ms, settled_ms))
        self._lengthen(window, len(whole), to_ms)
        asked = tuple(trade for trade in whole if trade.ts >= since_ms)
        return TradePage(asked, since_ms, to_ms, is_latest=end_ms >= settled_ms)

    def _whole(
        self, window: TradeWindow, told: tuple[Trade, ...], is_full: bool, settled_ms: int
    ) -> tuple[Trade, ...] | None:
        """All the trades of a window, once its last page is there."""
        begun = self._begun.get(window.from_ms, _Begun((), replace(window, page=1)))
        if begun.next != window:
            return None  # Somebody else has asked for the same page meanwhile.
        self._begun.pop(window.from_ms, None)
        # What is on two pages has moved from one to the other, and others may have moved past us.
        has_moved = not _ids(told).isdisjoint(_ids(begun.trades))
        whole = (*told, *begun.trades)
        if not is_full and not has_moved:
            return whole
        if window.is_shortest and has_moved:
            raise ExchangeUnavailable(f"the pages of the second at {window.from_ms} overlap")
        if has_moved or not _is_worth_a_page(window, whole):
            self._shorten(window, whole, settled_ms)
            return None
        self._begun[window.from_ms] = _Begun(whole, replace(window, page=window.page + 1))
        _forget_oldest(self._begun, _HELD)
        return None

    def _shorten(self, window: TradeWindow, whole: Sequence[Trade], settled_ms: int) -> None:
        """As short as the trades are close together, and by half at least."""
        end_ms = settled_ms if window.to_ms is None else window.to_ms
        fitting_ms = _spread(whole) // window.page * _WANTED_PAGES
        half_ms = min(self._pace_at(window.from_ms).length_ms, end_ms - window.from_ms) // 2
        # A second before the many, as the second that a window ends with may be told with it.
        full_ms = _second(whole[0].ts) - SHORTEST_MS if whole else 0
        self._remember(window, window.from_ms, min(fitting_ms, half_ms), full_ms)

    def _lengthen(self, window: TradeWindow, count: int, to_ms: int) -> None:
        """To what would have held the pages that are wanted, but no more than eightfold."""
        pace = self._pace_at(window.from_ms)
        length_ms = pace.length_ms
        if window.to_ms is not None:
            wanted = _WANTED_PAGES * self._page
            held = max(count, wanted // _LONGER_AT_MOST, 1)
            length_ms = (window.to_ms - window.from_ms) * wanted // held
        self._remember(window, _second(to_ms), length_ms, pace.full_ms)

    def _pace_at(self, moment_ms: int) -> _Pace:
        if not self._paces:
            return _Pace()
        return self._paces[min(self._paces, key=lambda at_ms: abs(at_ms - moment_ms))]

    def _remember(self, window: TradeWindow, at_ms: int, length_ms: int, full_ms: int) -> None:
        """The walk that asked for `window` goes on at `at_ms`."""
        self._paces.pop(window.from_ms, None)
        fit_ms = min(max(_second(length_ms), SHORTEST_MS), LONGEST_MS)
        self._paces[at_ms] = _Pace(fit_ms, full_ms)
        _forget_oldest(self._paces, _REMEMBERED)


def _is_worth_a_page(window: TradeWindow, whole: Sequence[Trade]) -> bool:
    """Whether a few pages more may well bring the rest of the window."""
    if window.to_ms is None or window.is_shortest:
        return window.is_shortest
    expected = window.page * (window.to_ms - window.from_ms) // max(1, _spread(whole))
    return window.page < MOST_PAGES and expected < _HOPEFUL * MOST_PAGES


def _spread(told: Sequence[Trade]) -> int:
    return told[-1].ts - told[0].ts if told else 0


def _ids(trades: Sequence[Trade]) -> set[str]:
    return {trade.id for trade in trades}


def _second(ms: int) -> int:
    return ms - ms % SHORTEST_MS


def _forget_oldest(kept: dict[int, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
