"""Bars from the trades inside them, as rows that the rest of the pipeline judges like any other."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.market.timeframe import Timeframe
    from collector.market.trade import Trade

    Row = tuple[float, ...]


def rows_of(trades: Iterable[Trade], timeframe: Timeframe) -> list[Row]:
    """One row of (ts, o, h, l, c, v, t) for every bar with a trade; each id counts once."""
    once: dict[str, Trade] = {}
    for trade in trades:
        once.setdefault(trade.id, trade)
    ordered = sorted(once.values(), key=lambda each: (each.ts, len(each.id), each.id))
    return [
        _row(open_ms, list(inside))
        for open_ms, inside in groupby(ordered, lambda each: timeframe.floor(each.ts))
    ]


def _row(open_ms: int, trades: list[Trade]) -> Row:
    prices = [trade.price for trade in trades]
    return (
        open_ms,
        prices[0],
        max(prices),
        min(prices),
        prices[-1],
        math.fsum(trade.amount for trade in trades),
        math.fsum(trade.price * trade.amount for trade in trades),
    )
