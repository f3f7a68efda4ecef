"""The connector's permit, which an adapter needs before every request.

It buys the token just before the request leaves, and receives the outcome: how late it was, whether
the exchange is healthy, what the exchange has counted, and whether it demanded a stop. A stop is
stored as a block on the connector before the caller learns of it, so that every worker on every
machine stops at its next token. The permit is in the adapter's lowest hook, so that no code path
can bypass it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.connectors.caller import current_caller
from collector.connectors.skipped_polls import SkippedPolls
from collector.errors import ExchangeBlocked, RateLimited

if TYPE_CHECKING:
    from collector.connectors.limiter import Limiter
    from collector.connectors.registry import ConnectorRegistry
    from collector.connectors.token import Token
    from collector.exchanges.port import Answer, Call
    from collector.exchanges.quirks import Quirks, VenueWindow

_log = logs.get("collector.connectors")
REPORT_SLACK = 0.02
"""The venue's count is stored when it is ahead of ours by this share of the limit."""


class ConnectorPermit:
    """Buys the token, counts the answer, and passes on what the venue reported."""

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
        self._skipped = SkippedPolls(quirks.exchange_id, registry, limiter.clock)
        # By identity: two calls for the same resource are equal, and have a token each.
        self._tokens: dict[int, Token] = {}

    async def before(self, call: Call) -> float:
        late = self._tokens.pop(id(call), None)
        if late is not None:
            self._limiter.waste(call.exchange_id, late)
        caller = current_caller()
        try:
            token = await self._limiter.acquire(
                call.exchange_id,
                weight=call.weight,
                priority=caller.priority,
                urgency=caller.urgency,
                patience=self._patience,
                key=call.key,
            )
        except RateLimited as denial:
            if call.key is not None:
                await self._skipped.denied(call.key, denial)
            raise
        if call.key is not None:
            self._skipped.allowed(call.key)
        caller.tokens += 1
        self._tokens[id(call)] = token
        self._limiter.sent(call.exchange_id, token, call.weight)
        return token.good_until

    async def after(self, answer: Answer) -> None:
        call, token = answer.call, self._tokens.pop(id(answer.call))
        metrics.REQUESTS.labels(call.exchange_id, call.endpoint, answer.outcome).inc()
        metrics.REQUEST_SECONDS.labels(call.exchange_id, call.endpoint).observe(answer.seconds)
        self._limiter.answered(call.exchange_id, token, answer.arrived_at, learn=answer.is_timed)
        await self._limiter.circuit(call.exchange_id).note(
            answer.health, token.probe, "" if answer.error is None else str(answer.error)
        )
        if isinstance(answer.error, ExchangeBlocked):
            await self._block(answer.error, token)
        for window, counted in self._quirks.counted(answer.headers):
            if self._is_ahead(counted, window):
                await self._registry.report_usage(
                    call.exchange_id,
                    window.unit,
                    window.period_ms,
                    counted,
                    sent_ms=token.granted_ms,
                )

    async def _block(self, stop: ExchangeBlocked, token: Token) -> None:
        connector = await self._registry.block(
            stop.exchange_id,
            stop.reason,
            for_ms=stop.retry_after_ms,
            ban=stop.ban,
            sent_ms=token.granted_ms,
        )
        until_ms = connector.document["blocked_until"]
        _log.warning(
            "exchange_blocked", exchange=stop.exchange_id, reason=stop.reason, until_ms=until_ms
        )

    def _is_ahead(self, counted: int, window: VenueWindow) -> bool:
        """Whether the venue is ahead of our own count by enough to be worth a write."""
        ours = self._limiter.counted(self._quirks.exchange_id, window.unit, window.period_ms)
        return ours is not None and counted > ours + window.limit * REPORT_SLACK
