"""What one subscription of a websocket sends, in Binance's format. No network here.

A stream is named as Binance names it: `btcusdt@bookTicker`, `btcusdt@ticker`, `btcusdt@trade`,
`btcusdt@kline_1m`. There are times in `bookTicker` too, as they do on Binance's futures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import orjson

from collector.simulated.bars import MINUTE
from collector.simulated.encode import page_rows
from collector.simulated.request import VenueError
from collector.simulated.tick_tape import TickTape
from collector.simulated.tickers import day_ticker, plain_trades
from collector.simulated.truth import frame_of

if TYPE_CHECKING:
    from collector.market.timeframe import Timeframe
    from collector.simulated.series import SimulatedSeries
    from collector.simulated.truth import Truth
    from collector.simulated.view import ClientView

_SLOW_MS = 1_000
"""How often Binance sends a day's figures or a running bar."""

_DAY_LETTERS = {
    "p": "priceChange",
    "P": "priceChangePercent",
    "w": "weightedAvgPrice",
    "x": "prevClosePrice",
    "c": "lastPrice",
    "Q": "lastQty",
    "b": "bidPrice",
    "B": "bidQty",
    "a": "askPrice",
    "A": "askQty",
    "o": "openPrice",
    "h": "highPrice",
    "l": "lowPrice",
    "v": "volume",
    "q": "quoteVolume",
    "O": "openTime",
    "C": "closeTime",
    "F": "firstId",
    "L": "lastId",
    "n": "count",
}
"""Binance's letters for the figures of a day."""


class StreamMessages(Protocol):
    """One subscription. `due` is how many book tickers its rate calls for now."""

    def messages(self, view: ClientView, now_ms: int, due: int) -> list[bytes]: ...


def subscription(name: str, truth: Truth, now_ms: int) -> StreamMessages | None:
    """The stream of that name; None for one that is not offered, which Binance ignores too."""
    venue_id, _, kind = name.partition("@")
    try:
        series = truth.series(venue_id.upper())
        if kind == "bookTicker":
            return _BookTickers(series)
        if kind == "ticker":
            return _DayTickers(series)
        if kind == "trade":
            return _TradesSeen(series, now_ms)
        if kind.startswith("kline_"):
            return _Klines(series, frame_of(kind.removeprefix("kline_")), now_ms)
    except VenueError:
        return None
    return None


class _BookTickers:
    """As many messages a second as the exchange was started with."""

    def __init__(self, series: SimulatedSeries) -> None:
        self._tape = TickTape(series)
        self._number = 0

    def messages(self, view: ClientView, now_ms: int, due: int) -> list[bytes]:
        book = self._tape.book(view, now_ms) if due else None
        if book is None:
            return []
        bid, ask = book
        first, self._number = self._number + 1, self._number + due
        return [
            (
                f'{{"e":"bookTicker","u":{number},"s":"{self._tape.venue_id}","b":"{bid}",'
                f'"B":"1.00000000","a":"{ask}","A":"1.00000000","T":{now_ms},"E":{now_ms}}}'
            ).encode()
            for number in range(first, first + due)
        ]


class _DayTickers:
    """The last day's figures with best bid and ask, once a second."""

    def __init__(self, series: SimulatedSeries) -> None:
        self._series = series
        self._sent_ms = 0

    def messages(self, view: ClientView, now_ms: int, due: int) -> list[bytes]:
        if now_ms - self._sent_ms < _SLOW_MS:
            return []
        self._sent_ms = now_ms
        day = day_ticker(view, self._series, now_ms)
        if day is None:
            return []
        named = {letter: day[name] for letter, name in _DAY_LETTERS.items()}
        head = {"e": "24hrTicker", "E": now_ms, "s": self._series.listing.id}
        return [orjson.dumps({**head, **named})]


class _TradesSeen:
    """Every trade once, as it happens."""

    def __init__(self, series: SimulatedSeries, now_ms: int) -> None:
        self._series = series
        self._until_ms = now_ms

    def messages(self, view: ClientView, now_ms: int, due: int) -> list[bytes]:
        since_ms, self._until_ms = self._until_ms, now_ms
        found: list[bytes] = []
        for minute_ms in range(MINUTE.floor(since_ms), now_ms + 1, MINUTE.ms):
            trades = view.trades(self._series, minute_ms, now_ms)
            fresh = trades.keep(trades.at_ms > since_ms)
            found += [
                orjson.dumps(
                    {
                        "e": "trade",
                        "E": now_ms,
                        "s": self._series.listing.id,
                        "t": each["id"],
                        "p": each["price"],
                        "q": each["qty"],
                        "T": each["time"],
                        "m": each["isBuyerMaker"],
                        "M": True,
                    }
                )
                for each in plain_trades(fresh, self._series.listing)
            ]
        return found


class _Klines:
    """The running bar once a second, and every bar once more when it has closed."""

    def __init__(self, series: SimulatedSeries, frame: Timeframe, now_ms: int) -> None:
        self._series = series
        self._frame = frame
        self._open_ms = frame.floor(now_ms)
        self._sent_ms = 0

    def messages(self, view: ClientView, now_ms: int, due: int) -> list[bytes]:
        found: list[bytes] = []
        open_ms = self._frame.floor(now_ms)
        while self._open_ms < open_ms:
            found += self._bar(view, self._open_ms, now_ms, is_closed=True)
            self._open_ms = self._frame.next_open(self._open_ms)
        if now_ms - self._sent_ms >= _SLOW_MS:
            self._sent_ms = now_ms
            found += self._bar(view, open_ms, now_ms, is_closed=False)
        return found

    def _bar(self, view: ClientView, open_ms: int, now_ms: int, *, is_closed: bool) -> list[bytes]:
        venue_id = self._series.listing.id
        bars = view.page(venue_id, self._frame, open_ms, None, 1, now_ms)
        if not len(bars) or int(bars.open_ms[0]) != open_ms:
            return []
        [(_, opened, high, low, closed, volume, close_ms, quote, trades, taker, taker_quote, _)] = (
            page_rows(bars, self._frame)
        )
        bar = {
            "t": open_ms,
            "T": close_ms,
            "s": venue_id,
            "i": self._frame.name,
            "f": 0,
            "L": 0,
            "o": opened,
            "c": closed,
            "h": high,
            "l": low,
            "v": volume,
            "n": trades,
            "x": is_closed,
            "q": quote,
            "V": taker,
            "Q": taker_quote,
            "B": "0",
        }
        return [orjson.dumps({"e": "kline", "E": now_ms, "s": venue_id, "k": bar})]
