"""The tape: which trades a request for trades gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.simulated.bars import MINUTE
from collector.simulated.trades import IDS_A_MINUTE, Trades, joined

if TYPE_CHECKING:
    from collector.simulated.request import PublicRequest
    from collector.simulated.series import SimulatedSeries
    from collector.simulated.view import ClientView

_FARTHEST = 1440
"""How many minutes are searched for trades before an answer stays short."""


def newest_trades(view: ClientView, series: SimulatedSeries, limit: int, now_ms: int) -> Trades:
    """The last `limit` trades."""
    parts: list[Trades] = []
    found, minute = 0, MINUTE.floor(now_ms)
    for _ in range(_FARTHEST):
        if found >= limit:
            break
        parts.insert(0, view.trades(series, minute, now_ms))
        found += len(parts[0])
        minute -= MINUTE.ms
    return joined(parts).keep(slice(max(0, found - limit), None))


def trades_from(
    view: ClientView, series: SimulatedSeries, ask: PublicRequest, limit: int
) -> Trades:
    """The first `limit` trades from an id or a moment on."""
    first_id, start, end = (ask.integer(name) for name in ("fromId", "startTime", "endTime"))
    stop = ask.now_ms if end is None else min(end, ask.now_ms)
    begin = first_id // IDS_A_MINUTE * MINUTE.ms if first_id is not None else start or 0
    minute = max(MINUTE.floor(begin), series.listing.listed_ms)
    parts: list[Trades] = []
    found = 0
    for _ in range(_FARTHEST):
        if found >= limit or minute > stop:
            break
        trades = view.trades(series, minute, stop)
        trades = trades.keep((trades.at_ms >= (start or 0)) & (trades.ids >= (first_id or 0)))
        parts.append(trades)
        found += len(trades)
        minute += MINUTE.ms
    return joined(parts).keep(slice(0, limit))
