"""Which requests for trades a venue gets, and which range of time an answer covers.

There are three kinds of venue. One returns only its newest trades: an answer covers from its first
trade on. One returns the trades from a time on, oldest first: a full answer covers up to its last
trade. One returns the trades of a window, newest first.

Of a window with more trades than an answer holds only the newest come, while a range has to be
covered from its beginning. So a full answer covers nothing yet. It shows the density of trades:
when a few more pages should fetch the rest, they are requested one after another, and the window is
complete with the last one; otherwise a shorter window is requested instead. It grows again where
trades are sparse, up to where they were dense. Windows are whole seconds, as these venues count
them, and a second has as many pages as it needs.

Several jobs may walk through the history of one market at different places, so a density is stored
with the place where it was learnt, and each walk uses the nearest one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from collector.durations import DAY_MS, HOUR_MS
from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.trades import LIVE_EDGE_MS, TradesAnswer
from collector.exchanges.port import TradePage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.clock import Clock
    from collector.exchanges.quirks import Quirks
    from collector.exchanges.quirks.record import WindowedTrades
    from collector.market.trade import Trade

_LATER_MS = 600_000
"""When trades are no longer kept, this much more is given up, so as not to be too late again."""


@dataclass(frozen=True, slots=True)
class TradeQuestion:
    """One request, as ccxt's `fetch_trades` takes it, and how its answer is read."""

    since_ms: int | None
    limit: int | None
    params: Mapping[str, Any]
    read: Callable[[TradesAnswer], TradePage]


class TradeQuestions:
    """The requests that one venue's quirks lead to."""

    def __init__(self, quirks: Quirks, clock: Clock) -> None:
        self._quirks = quirks
        self._clock = clock
        self._ahead_ms = 0  # by what the venue's clock is ahead of ours
        self._windows: dict[str, TradeWindows] = {}

    def about(self, symbol: str, since_ms: int) -> TradeQuestion:
        """The request for the trades of a market from `since_ms` on."""
        size = self._quirks.trades_at_once(symbol)
        if size is None:
            return TradeQuestion(None, None, {}, lambda answer: _newest(answer, since_ms))
        if self._quirks.windowed_trades is not None:
            return self._of_window(symbol, since_ms, size, self._quirks.windowed_trades)
        named = self._quirks.trades_from(since_ms)
        return TradeQuestion(
            since_ms=None if named else since_ms,
            limit=size,
            params=named,
            read=lambda answer: _from_moment(answer, since_ms, size),
        )

    def _of_window(
        self, symbol: str, since_ms: int, size: int, rule: WindowedTrades
    ) -> TradeQuestion:
        now_ms = self._clock.wall_ms() + self._ahead_ms
        oldest_ms = now_ms - rule.kept_ms
        from_ms = since_ms if since_ms >= oldest_ms else oldest_ms + _LATER_MS
        windows = self._windows.setdefault(symbol, TradeWindows(size))
        window = windows.next(from_ms, now_ms - LIVE_EDGE_MS)

        def read(answer: TradesAnswer) -> TradePage:
            self._ahead_ms = answer.now_ms - self._clock.wall_ms()
            return windows.read(
                window,
                answer.trades,
                count=answer.count,
                since_ms=from_ms,
                final_ms=answer.final_ms,
            )

        return TradeQuestion(None, size, _named(window, rule), read)


def _named(window: TradeWindow, rule: WindowedTrades) -> dict[str, int]:
    """The window in the venue's parameters.

    It is undocumented whether its ends are inclusive. So the second before the first one and the
    one after the last are requested too, and duplicates are removed by id.
    """
    named = {rule.begin: window.from_ms // 1000 - 1}
    if window.to_ms is not None:
        named[rule.end] = window.to_ms // 1000
    if window.page > 1:
        named[rule.page] = window.page
    return named


def _newest(answer: TradesAnswer, since_ms: int) -> TradePage:
    from_ms = max(since_ms, answer.trades[0].ts) if answer.trades else since_ms
    return _page(answer, since_ms, from_ms, answer.final_ms)


def _from_moment(answer: TradesAnswer, since_ms: int, size: int) -> TradePage:
    end_ms = answer.final_ms if answer.count < size else _last_trade_ms(answer.trades, since_ms)
    return _page(answer, since_ms, since_ms, end_ms)


def _page(answer: TradesAnswer, since_ms: int, from_ms: int, end_ms: int) -> TradePage:
    return TradePage(
        trades=tuple(each for each in answer.trades if each.ts >= since_ms),
        from_ms=from_ms,
        to_ms=max(from_ms, min(end_ms, answer.final_ms)),
        is_latest=end_ms >= answer.final_ms,
    )


def _last_trade_ms(trades: Sequence[Trade], since_ms: int) -> int:
    """Up to the last trade, whose millisecond may hold more, unless there is no other."""
    last_ms = trades[-1].ts if trades else since_ms
    return last_ms if last_ms > since_ms else since_ms + 1


SHORTEST_MS = 1_000
FIRST_MS = HOUR_MS
LONGEST_MS = 30 * DAY_MS
MOST_PAGES = 8
"""Most pages of one window, unless it is the shortest."""
_HOPEFUL = 4
"""Trades that are dense at the end of a window may be sparse at its beginning."""
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
    """How long the next window is. One that reaches past `full_ms` has too many trades."""

    length_ms: int = FIRST_MS
    full_ms: int = 0

    def end(self, from_ms: int) -> int:
        end_ms = from_ms + self.length_ms
        return min(end_ms, self.full_ms) if from_ms < self.full_ms else end_ms


@dataclass(frozen=True, slots=True)
class _Begun:
    """A window of which some pages are there: their trades, and the next page."""

    trades: tuple[Trade, ...]
    next: TradeWindow


class TradeWindows:
    """The windows of one market. It sends nothing; the caller does, and passes it the answers."""

    def __init__(self, page: int) -> None:
        """`page` is how many trades an answer holds at most."""
        self._page = page
        self._paces: dict[int, _Pace] = {}
        self._begun: dict[int, _Begun] = {}

    def next(self, since_ms: int, final_ms: int) -> TradeWindow:
        """The request from `since_ms` on. After `final_ms` trades may still be added."""
        from_ms = _second(since_ms)
        begun = self._begun.get(from_ms)
        if begun is not None:
            return begun.next
        to_ms = self._pace_at(from_ms).end(from_ms)
        return TradeWindow(from_ms, to_ms if to_ms <= final_ms else None)

    def read(
        self,
        window: TradeWindow,
        trades: Sequence[Trade],
        *,
        count: int,
        since_ms: int,
        final_ms: int,
    ) -> TradePage:
        """What an answer of `count` trades covers; `trades` are all of them, oldest first."""
        whole = self._whole(window, tuple(trades), count >= self._page, final_ms)
        if whole is None:
            # From here on even the shortest window would not be final.
            is_latest = window.from_ms + SHORTEST_MS > final_ms
            return TradePage((), since_ms, since_ms, is_latest=is_latest)
        end_ms = final_ms if window.to_ms is None else window.to_ms
        to_ms = max(since_ms, min(end_ms, final_ms))
        self._lengthen(window, len(whole), to_ms)
        asked = tuple(trade for trade in whole if trade.ts >= since_ms)
        return TradePage(asked, since_ms, to_ms, is_latest=end_ms >= final_ms)

    def _whole(
        self, window: TradeWindow, trades: tuple[Trade, ...], is_full: bool, final_ms: int
    ) -> tuple[Trade, ...] | None:
        """All the trades of a window, once its last page is there."""
        begun = self._begun.get(window.from_ms, _Begun((), replace(window, page=1)))
        if begun.next != window:
            return None  # Another job has requested the same page meanwhile.
        self._begun.pop(window.from_ms, None)
        # Trades on two pages have moved from one to the other, so others may have been missed.
        has_moved = not _ids(trades).isdisjoint(_ids(begun.trades))
        whole = (*trades, *begun.trades)
        if not is_full and not has_moved:
            return whole
        if window.is_shortest and has_moved:
            raise ExchangeUnavailable(f"the pages of the second at {window.from_ms} overlap")
        if has_moved or not _is_worth_a_page(window, whole):
            self._shorten(window, whole, final_ms)
            return None
        self._begun[window.from_ms] = _Begun(whole, replace(window, page=window.page + 1))
        _forget_oldest(self._begun, _HELD)
        return None

    def _shorten(self, window: TradeWindow, whole: Sequence[Trade], final_ms: int) -> None:
        """As short as the density requires, and at most half."""
        end_ms = final_ms if window.to_ms is None else window.to_ms
        fitting_ms = _spread(whole) // window.page * _WANTED_PAGES
        half_ms = min(self._pace_at(window.from_ms).length_ms, end_ms - window.from_ms) // 2
        # A second before the dense part, because the last second of a window may belong to it.
        full_ms = _second(whole[0].ts) - SHORTEST_MS if whole else 0
        self._remember(window, window.from_ms, min(fitting_ms, half_ms), full_ms)

    def _lengthen(self, window: TradeWindow, count: int, to_ms: int) -> None:
        """To what would have filled the wanted pages, but at most eightfold."""
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
        """The walk that requested `window` continues at `at_ms`."""
        self._paces.pop(window.from_ms, None)
        fit_ms = min(max(_second(length_ms), SHORTEST_MS), LONGEST_MS)
        self._paces[at_ms] = _Pace(fit_ms, full_ms)
        _forget_oldest(self._paces, _REMEMBERED)


def _is_worth_a_page(window: TradeWindow, whole: Sequence[Trade]) -> bool:
    """Whether a few more pages probably fetch the rest of the window."""
    if window.to_ms is None or window.is_shortest:
        return window.is_shortest
    expected = window.page * (window.to_ms - window.from_ms) // max(1, _spread(whole))
    return window.page < MOST_PAGES and expected < _HOPEFUL * MOST_PAGES


def _spread(trades: Sequence[Trade]) -> int:
    return trades[-1].ts - trades[0].ts if trades else 0


def _ids(trades: Sequence[Trade]) -> set[str]:
    return {trade.id for trade in trades}


def _second(ms: int) -> int:
    return ms - ms % SHORTEST_MS


def _forget_oldest(kept: dict[int, Any], most: int) -> None:
    while len(kept) > most:
        del kept[next(iter(kept))]
