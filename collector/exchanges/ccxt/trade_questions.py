"""Which requests for trades a venue gets, and which range of time an answer covers.

There are three kinds of venue. One returns only its newest trades: an answer covers from its first
trade on. One returns the trades from a time on, oldest first: a full answer covers up to its last
trade. One returns the trades of a window, newest first: see `trade_windows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.exchanges.ccxt.trade_windows import TradeWindow, TradeWindows
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
