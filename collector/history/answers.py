"""The shapes of answers: 256-bit integers are text, times are epoch ms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.history import uint256
from collector.history.candle import Candle
from collector.history.uint256 import SCALE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from collector.history.bucket_columns import BucketColumns


def spot(found: BucketColumns) -> dict[str, Any]:
    """The last trade's price and time."""
    if not len(found):
        return {"price": None, "ts": None}
    last = next(iter(found.take(slice(len(found) - 1, None))))
    return {"price": str(last.close), "ts": last.last_ts}


def vwap(parts: Iterable[BucketColumns]) -> dict[str, Any]:
    """The mean price, weighted by volume."""
    base, quote, trades = _sums(parts)
    price = str(quote * SCALE // base) if base else None
    return {"price": price, "sum_base": str(base), "sum_quote": str(quote), "trades": trades}


def volume(parts: Iterable[BucketColumns]) -> dict[str, Any]:
    base, quote, trades = _sums(parts)
    return {"sum_base": str(base), "sum_quote": str(quote), "trades": trades}


def ohlcv(candle: Candle) -> dict[str, Any]:
    texts = ("open", "high", "low", "close", "sum_base", "sum_quote")
    return {
        "ts": candle.ts,
        **{name: str(getattr(candle, name)) for name in texts},
        "first_ts": candle.first_ts,
        "last_ts": candle.last_ts,
        "trades": candle.trades,
        "filled": candle.filled,
    }


def bucket_volume(candle: Candle) -> dict[str, Any]:
    return {
        "ts": candle.ts,
        "sum_base": str(candle.sum_base),
        "sum_quote": str(candle.sum_quote),
        "trades": candle.trades,
    }


def filled(
    found: Iterable[Candle], price: int | None, from_ms: int, to_ms: int, candle_ms: int
) -> Iterator[Candle]:
    """Candles without a hole between them, from the first moment at which a price is known.

    `price` is the pair's last one before `from_ms`.
    """
    at = from_ms
    for candle in found:
        if price is not None:
            yield from (Candle.filler(ts, price) for ts in range(at, candle.ts, candle_ms))
        yield candle
        at, price = candle.ts + candle_ms, candle.close
    if price is not None:
        yield from (Candle.filler(ts, price) for ts in range(at, to_ms, candle_ms))


def _sums(parts: Iterable[BucketColumns]) -> tuple[int, int, int]:
    """Base, quote and trades. Python ints: the sum of many buckets may pass 2^256-1."""
    base = quote = trades = 0
    for part in parts:
        base += sum(uint256.to_ints(part.wide("sum_base")))
        quote += sum(uint256.to_ints(part.wide("sum_quote")))
        trades += int(part.ints[3].sum())
    return base, quote, trades
