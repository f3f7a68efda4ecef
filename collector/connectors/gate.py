"""An exchange behind its connector: a token before every request, every hint of a ban kept.

`ConnectorPermit` stands inside the adapter, at its lowest hook. `GatedExchange` stands around it
and turns an exchange's "stop" into a block on the connector before anyone else hears of it, so
that every worker on every machine stops at its next token.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.errors import ExchangeBlocked

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.connectors.limiter import Limiter, Token
    from collector.connectors.registry import ConnectorRegistry
    from collector.exchanges.port import (
        Answer,
        BarPage,
        Call,
        Exchange,
        Markets,
        Ticker,
        TradePage,
    )
    from collector.exchanges.quirks import Quirks, VenueWindow
    from collector.market.timeframe import Timeframe

_log = logs.get("collector.connectors")
REPORT_SLACK = 0.02
"""The venue's count is written down when it is ahead of ours by this share of the limit."""


class ConnectorPermit:
    """Buys the token, counts the answer, and passes on what the venue says it has counted."""

    def __init__(
        self,
        limiter: Limiter,
        registry: ConnectorRegistry,
        quirks: Quirks,
        *,
        patience: float,
    ) -> None:
        self._limiter = limiter
        self._registry = registry
        self._quirks = quirks
        self._patience = patience
        # By identity: two calls for the same thing are equal, and have a token each.
        self._tokens: dict[int, Token] = {}

    async def before(self, call: Call) -> float:
        late = self._tokens.pop(id(call), None)
        if late is not None:
            self._limiter.waste(call.exchange_id, late)
        token = await self._limiter.acquire(
            call.exchange_id, weight=call.weight, patience=self._patience
        )
        self._tokens[id(call)] = token
        return token.good_until

    async def after(self, answer: Answer) -> None:
        call = answer.call
        outcome = "none" if answer.status == 0 else f"{answer.status // 100}xx"
        metrics.REQUESTS.labels(call.exchange_id, call.endpoint, outcome).inc()
        metrics.REQUEST_SECONDS.labels(call.exchange_id, call.endpoint).observe(answer.seconds)
        probe = self._tokens.pop(id(call)).probe
        await self._limiter.circuit(call.exchange_id).note(answer.health, probe)
        for window, counted in self._quirks.counted(answer.headers):
            if self._is_news(counted, window):
                await self._registry.report_usage(
                    call.exchange_id,
                    window.unit,
                    window.period_ms,
                    counted,
                    for_ms=window.period_ms,
                )

    def _is_news(self, counted: int, window: VenueWindow) -> bool:
        """Whether the venue is ahead of our own count by enough to be worth a write."""
        ours = self._limiter.counted(self._quirks.exchange_id, window.unit, window.period_ms)
        return ours is not None and counted > ours + window.limit * REPORT_SLACK


class GatedExchange:
    """An `Exchange` that tells the connector when the venue says stop."""

    def __init__(self, exchange: Exchange, registry: ConnectorRegistry) -> None:
        self.id = exchange.id
        self._exchange = exchange
        self._registry = registry

    async def load_markets(self) -> Markets:
        async with self._heeding():
            return await self._exchange.load_markets()

    def restore_markets(self, markets: Markets) -> None:
        self._exchange.restore_markets(markets)

    async def fetch_bars(
        self, symbol: str, timeframe: Timeframe, since_ms: int, limit: int
    ) -> BarPage:
        async with self._heeding():
            return await self._exchange.fetch_bars(symbol, timeframe, since_ms, limit)

    async def earliest_bar_ms(self, symbol: str, timeframe: Timeframe) -> int | None:
        async with self._heeding():
            return await self._exchange.earliest_bar_ms(symbol, timeframe)

    async def fetch_trades(self, symbol: str, since_ms: int) -> TradePage:
        async with self._heeding():
            return await self._exchange.fetch_trades(symbol, since_ms)

    async def fetch_tickers(self) -> tuple[Ticker, ...]:
        async with self._heeding():
            return await self._exchange.fetch_tickers()

    async def server_ms(self) -> int:
        async with self._heeding():
            return await self._exchange.server_ms()

    async def close(self) -> None:
        await self._exchange.close()

    @asynccontextmanager
    async def _heeding(self) -> AsyncIterator[None]:
        try:
            yield
        except ExchangeBlocked as stop:
            connector = await self._registry.block(self.id, stop.reason, for_ms=stop.retry_after_ms)
            until_ms = connector.document["blocked_until"]
            _log.warning(
                "exchange_blocked", exchange=self.id, reason=stop.reason, until_ms=until_ms
            )
            raise
