"""What a venue is asked for its trades, and which stretch of time an answer settles.

There are three kinds of venue. One gives its newest trades and no others: it speaks from its first
one on. One gives the trades from a moment on, oldest first: a full answer speaks up to its last
trade and no further. One gives the trades of a window, newest first: see `trade_windows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.exchanges.ccxt_trades import LIVE_EDGE_MS, Told
from collector.exchanges.port import TradePage
from collector.exchanges.trade_windows import TradeWindow, TradeWindows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.clock import Clock
    from collector.exchanges.quirks import Quirks
    from collector.exchanges.quirks.record import WindowedTrades
    from collector.market.trade import Trade

_LATER_MS = 600_000
"""Trades that are no longer kept are given up with so much more, not to be too late again."""


@dataclass(frozen=True, slots=True)
class TradeQuestion:
    """One request, as ccxt's `fetch_trades` takes it, and how its answer is read."""

    since_ms: int | None
    limit: int | None
    params: Mapping[str, Any]
    read: Callable[[Told], TradePage]


class TradeQuestions:
    """The questions that one venue's quirks lead to."""

    def __init__(self, quirks: Quirks, clock: Clock) -> None:
        self._quirks = quirks
        self._clock = clock
        self._ahead_ms = 0  # by what the venue's clock is ahead of ours
        self._windows: dict[str, TradeWindows] = {}

    def about(self, symbol: str, since_ms: int) -> TradeQuestion:
        """What to ask for the trades of a market from `since_ms` on."""
        size = self._quirks.trades_at_once(symbol)
        if size is None:
            return TradeQuestion(None, None, {}, lambda told: _newest(told, since_ms))
        if self._quirks.windowed_trades is not None:
            return self._of_window(symbol, since_ms, size, self._quirks.windowed_trades)
        name = self._quirks.trades_since
        return TradeQuestion(
            since_ms=since_ms if name is None else None,
            limit=size,
            params={} if name is None else {name: since_ms},
            read=lambda told: _from_moment(told, since_ms, size),
        )

    def _of_window(
        self, symbol: str, since_ms: int, size: int, rule: WindowedTrades
    ) -> TradeQuestion:
        now_ms = self._clock.wall_ms() + self._ahead_ms
        oldest_ms = now_ms - rule.kept_ms
        from_ms = since_ms if since_ms >= oldest_ms else oldest_ms + _LATER_MS
        windows = self._windows.setdefault(symbol, TradeWindows(size))
        window = windows.next(from_ms, now_ms - LIVE_EDGE_MS)

        def read(told: Told) -> TradePage:
            self._ahead_ms = told.now_ms - self._clock.wall_ms()
            return windows.read(
                window,
                told.trades,
                count=told.count,
                since_ms=from_ms,
                settled_ms=told.settled_ms,
            )

        return TradeQuestion(None, size, _named(window, rule), read)


def _named(window: TradeWindow, rule: WindowedTrades) -> dict[str, int]:
    """The window in the venue's words.

    Nobody says whether its ends belong to it. The first second is asked for with the one before it
    and the last one with the next, so that every trade comes either way; ids tell what came twice.
    """
    named = {rule.begin: window.from_ms // 1000 - 1}
    if window.to_ms is not None:
        named[rule.end] = window.to_ms // 1000
    if window.page > 1:
        named[rule.page] = window.page
    return named


def _newest(told: Told, since_ms: int) -> TradePage:
    from_ms = max(since_ms, told.trades[0].ts) if told.trades else since_ms
    return _page(told, since_ms, from_ms, told.settled_ms)


def _from_moment(told: Told, since_ms: int, size: int) -> TradePage:
    end_ms = told.settled_ms if told.count < size else _last_told(told.trades, since_ms)
    return _page(told, since_ms, since_ms, end_ms)


def _page(told: Told, since_ms: int, from_ms: int, end_ms: int) -> TradePage:
    return TradePage(
        trades=tuple(each for each in told.trades if each.ts >= since_ms),
        from_ms=from_ms,
        to_ms=max(from_ms, min(end_ms, told.settled_ms)),
        is_latest=end_ms >= told.settled_ms,
    )


def _last_told(trades: Sequence[Trade], since_ms: int) -> int:
    """Up to the last trade; its own millisecond may hold more, unless nothing else was told."""
    last_ms = trades[-1].ts if trades else since_ms
    return last_ms if last_ms > since_ms else since_ms + 1
