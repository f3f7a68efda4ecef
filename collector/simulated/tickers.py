"""Tickers and recent trades in Binance's format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.durations import DAY_MS
from collector.simulated import bars as row
from collector.simulated.bars import MINUTE
from collector.simulated.encode import decimal
from collector.simulated.trades import IDS_A_MINUTE

if TYPE_CHECKING:
    from collector.simulated.listing import SimulatedMarket
    from collector.simulated.series import SimulatedSeries
    from collector.simulated.trades import Trades
    from collector.simulated.view import ClientView

_LAST_MINUTES = 60


def day_ticker(view: ClientView, series: SimulatedSeries, now_ms: int) -> dict[str, Any] | None:
    """/api/v3/ticker/24hr of one market; None when it was not traded for a day."""
    start = MINUTE.floor(now_ms) - DAY_MS
    minutes = view.minutes(series, start, now_ms + 1, now_ms)
    if not len(minutes):
        return None
    table = minutes.table
    opened, last = int(table[row.OPEN, 0]), int(table[row.CLOSE, -1])
    volume, quote = int(table[row.VOLUME].sum()), int(table[row.QUOTE].sum())
    price, size = series.listing.price_digits, series.listing.volume_digits
    book = _book(series.listing, last)
    return {
        "symbol": series.listing.id,
        "priceChange": _signed(last - opened, price),
        "priceChangePercent": f"{(last - opened) / opened * 100:.3f}",
        "weightedAvgPrice": decimal(quote // volume, price),
        "prevClosePrice": decimal(opened, price),
        "lastPrice": decimal(last, price),
        "lastQty": book["bidQty"],
        **book,
        "openPrice": decimal(opened, price),
        "highPrice": decimal(int(table[row.HIGH].max()), price),
        "lowPrice": decimal(int(table[row.LOW].min()), price),
        "volume": decimal(volume, size),
        "quoteVolume": decimal(quote, price + size),
        "openTime": start,
        "closeTime": now_ms,
        "firstId": start // MINUTE.ms * IDS_A_MINUTE,
        "lastId": now_ms // MINUTE.ms * IDS_A_MINUTE,
        "count": int(table[row.TRADES].sum()),
    }


def book_ticker(view: ClientView, series: SimulatedSeries, now_ms: int) -> dict[str, Any] | None:
    """/api/v3/ticker/bookTicker of one market: a tick to either side of the last price."""
    running = MINUTE.floor(now_ms)
    minutes = view.minutes(series, running, running + MINUTE.ms, now_ms)
    if not len(minutes):
        minutes = view.minutes(series, running - _LAST_MINUTES * MINUTE.ms, running, now_ms)
    if not len(minutes):
        return None
    last = int(minutes.table[row.CLOSE, -1])
    return {"symbol": series.listing.id, **_book(series.listing, last)}


def aggregate_trades(trades: Trades, listing: SimulatedMarket) -> list[dict[str, Any]]:
    """/api/v3/aggTrades: every trade is an aggregate of itself."""
    return [
        {
            "a": number,
            "p": decimal(price, listing.price_digits),
            "q": decimal(size, listing.volume_digits),
            "f": number,
            "l": number,
            "T": at_ms,
            "m": maker == 1,
            "M": True,
        }
        for number, at_ms, price, size, maker in _each(trades)
    ]


def plain_trades(trades: Trades, listing: SimulatedMarket) -> list[dict[str, Any]]:
    """/api/v3/trades."""
    price_digits, size_digits = listing.price_digits, listing.volume_digits
    return [
        {
            "id": number,
            "price": decimal(price, price_digits),
            "qty": decimal(size, size_digits),
            "quoteQty": decimal(price * size, price_digits + size_digits),
            "time": at_ms,
            "isBuyerMaker": maker == 1,
            "isBestMatch": True,
        }
        for number, at_ms, price, size, maker in _each(trades)
    ]


def _each(trades: Trades) -> list[list[int]]:
    """id, time, price, size, maker of every trade."""
    rows: list[list[int]] = trades.table.T.tolist()
    return rows


def _book(listing: SimulatedMarket, last: int) -> dict[str, str]:
    size = decimal(10**listing.volume_digits, listing.volume_digits)
    return {
        "bidPrice": decimal(max(last - 1, 1), listing.price_digits),
        "bidQty": size,
        "askPrice": decimal(last + 1, listing.price_digits),
        "askQty": size,
    }


def _signed(value: int, digits: int) -> str:
    return ("-" if value < 0 else "") + decimal(abs(value), digits)
