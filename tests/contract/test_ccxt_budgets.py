"""An exchange without a record is never asked faster than ccxt itself would ask it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from collector.clock import ManualClock
from collector.connectors.venue_limits import venue_limits
from collector.errors import BadRequest, ExchangeUnavailable, RateLimited
from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.exchanges.ccxt.markets import markets_of
from collector.exchanges.quirks.lookup import WRITTEN_DOWN
from collector.exchanges.registry import quirks_for
from collector.market.timeframe import Timeframe
from tests.contract.unsent_requests import (
    IDS,
    KINDS,
    NOW_MS,
    SINCE_MS,
    Unsent,
    a_timeframe,
    complete,
    requests_for,
    with_bars,
)

if TYPE_CHECKING:
    from collector.exchanges.port import Answer, Call

LEARNT = [each for each in with_bars() if each not in WRITTEN_DOWN]
NOT_BUILT = {"cex", "luno", "modetrade", "woofipro"}
"""They want a key, or an argument that a request for bars does not have elsewhere."""


class Refusing:
    """Notes what is asked for, and lets nothing out."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    async def before(self, call: Call) -> float:
        self.calls.append(call)
        raise RateLimited(call.exchange_id, 1_000, "nothing leaves")

    async def after(self, answer: Answer) -> None: ...


async def call_for_bars(exchange_id: str, market: Any, limit: int) -> Call | None:
    """The request for a page of bars as the limiter hears of it; None where none is built."""
    permit = Refusing()
    exchange = CcxtExchange(exchange_id, permit, clock=ManualClock(NOW_MS))
    exchange._ccxt.timeout_on_exit = 0  # Nothing was sent: no connection has to end.
    try:
        markets = markets_of(exchange_id, {market["symbol"]: market}, exchange._ccxt.timeframes)
        exchange.restore_markets(markets)
        frame = Timeframe.parse(a_timeframe(exchange._ccxt.timeframes))
        # ccxt refuses some markets by itself, and reads a number in some names.
        with suppress(RateLimited, BadRequest, ExchangeUnavailable):
            await exchange.fetch_bars(market["symbol"], frame, SINCE_MS, limit)
    finally:
        await exchange.close()
    return permit.calls[0] if permit.calls else None


def least_wait_ms(exchange_id: str, call: Call) -> float:
    """What our budget leaves between two such requests, on average."""
    limits = venue_limits(exchange_id)
    windows = [(limits.rate_limit, limits.rate_limit_period_ms, 1)] + [
        (each.limit, each.period_ms, each.cost(call.weight)) for each in limits.windows
    ]
    assert all(cost <= limit for limit, _, cost in windows), "it would never fit"
    return max(period_ms / (limit // cost) for limit, period_ms, cost in windows)


@pytest.mark.parametrize("exchange_id", LEARNT)
async def test_bars_are_asked_for_no_faster_than_ccxt_would(exchange_id: str) -> None:
    compared = 0
    for fields in KINDS.values():
        for venue_id in IDS:
            market = complete(exchange_id, fields, venue_id)
            for limit in (3, quirks_for(exchange_id).largest_page):
                ccxts = await requests_for(exchange_id, market, limit)
                bars = [each for each in ccxts if isinstance(each, Unsent) and each.what == "bars"]
                call = await call_for_bars(exchange_id, market, limit)
                if call is not None and bars:
                    assert least_wait_ms(exchange_id, call) >= bars[0].wait_ms
                    compared += 1
    assert bool(compared) != (exchange_id in NOT_BUILT), "nothing was compared, or it can be"


@pytest.mark.parametrize(
    ("exchange_id", "most"),
    [("grvt", 8), ("hitbtc", 30), ("bequant", 30), ("weex", 5), ("indodax", 4), ("phemex", 1)],
)
async def test_the_cost_of_the_endpoint_counts(exchange_id: str, most: int) -> None:
    fields = KINDS["linear" if exchange_id == "grvt" else "spot"]
    call = await call_for_bars(exchange_id, complete(exchange_id, fields, IDS[0]), 100)
    assert call is not None
    assert most * 0.9 <= 1_000 / least_wait_ms(exchange_id, call) <= most
