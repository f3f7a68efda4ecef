"""The simulated exchange behind the port: ccxt for requests, a websocket of its own for prices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.exchanges.ccxt.exchange import CcxtExchange
from collector.simulated.ccxt_class import DEFAULT_URL
from collector.simulated.ticks import SimulatedTicks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.ccxt.request_hook import Desk
    from collector.exchanges.ticks import TickRequest, TickSource


class SimulatedAdapter(CcxtExchange):
    """Prices come as fast as its server sends them."""

    def _tick_source(
        self, desk: Desk, markets: Mapping[str, Any], wanted: TickRequest
    ) -> TickSource:
        venue_ids = {symbol: str(market["id"]) for symbol, market in markets.items()}
        return SimulatedTicks(desk, desk.address or DEFAULT_URL, wanted, venue_ids)
