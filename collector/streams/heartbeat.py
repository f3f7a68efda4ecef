"""The heartbeat and the market status of an exchange, built from their parts. Pure.

Parts that are not provided are null: an exchange without a history budget has no `history`, a
stream that is published without queues no `supervisor`, one whose cadence no job polls by no
`adaptive_poll`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from collector.streams.publisher import HeartbeatMessage, MarketStatusMessage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.market.calendar.calendar import Calendar
    from collector.streams.last_prices import TickTotals
    from collector.streams.states import Connection, PriceState, Since
    from collector.streams.tick_health import TickHealth

PRICE_CHANNEL = "price_tik"


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is known of a stream at one moment. Times are epoch seconds."""

    exchange_id: str
    fence: int
    now: float
    diagnosis: Since
    price_state: PriceState
    connection: Connection
    health: TickHealth
    silence: float | None
    snap_ts: float | None
    tick_ts: float | None
    interval_seconds: float
    totals: TickTotals
    waiting: int = 0
    unreadable: int = 0
    """Messages that never became a tick."""
    dropped: int = 0
    reconnects: int = 0
    is_polled: bool = True
    """Whether any job polls for new bars at the stream's cadence."""
    symbols_total: int = 0
    symbols_state: Mapping[str, Any] = field(default_factory=dict)
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatContext:
    """What other parts of the program add: the budget for history, diagnostics, the publisher."""

    history: Mapping[str, Any] | None = None
    diag: Mapping[str, Any] | None = None
    supervisor: Mapping[str, Any] | None = None

    def beside(
        self, history: Mapping[str, Any] | None, pauses: Mapping[str, Any]
    ) -> HeartbeatContext:
        """With the budget for history and the pauses of the exchange, where it has them."""
        diag = dict(self.diag or {})
        backoff = {**pauses, **diag.get("backoff", {})}
        if backoff:
            diag["backoff"] = backoff
        return replace(self, history=self.history or history, diag=diag or None)


def heartbeat(facts: StreamFacts, context: HeartbeatContext) -> HeartbeatMessage:
    """The whole heartbeat of an exchange."""
    payload = {
        "state": facts.diagnosis.state.value,
        "ts": facts.now,
        "last_change_ts": facts.diagnosis.at,
        "fence": facts.fence,
        "price_snap_ts": facts.snap_ts,
        "tick_silence_seconds": _rounded(facts.silence),
        "context": {
            "price_stream": price_stream(facts),
            "history": context.history,
            "diag": context.diag,
            "supervisor": context.supervisor,
        },
    }
    return HeartbeatMessage(facts.exchange_id, facts.fence, payload)


def price_stream(facts: StreamFacts) -> dict[str, Any]:
    """`context.price_stream`: everything about the ticks."""
    health = facts.health
    return {
        "state": facts.price_state.value,
        "connection": facts.connection.value,
        "tick_silence_seconds": _rounded(facts.silence),
        "symbols_total": facts.symbols_total,
        "symbols_state": dict(facts.symbols_state),
        "queue": {
            "waiting": facts.waiting,
            "received": facts.totals.received,
            "snapped": facts.totals.snapped,
            "superseded": facts.totals.superseded,
            "dropped": facts.dropped,
        },
        "tick_errors": facts.totals.errors + facts.unreadable,
        "reconnects": facts.reconnects,
        "last_error": facts.last_error,
        "channel": f"{facts.exchange_id}:{PRICE_CHANNEL}",
        "interval_seconds": facts.interval_seconds,
        "last_snap_ts": facts.snap_ts,
        "last_tick_ts": facts.tick_ts,
        "stream_state": {"prices": health.prices.value, "history": health.history.value},
        "adaptive_poll": _adaptive_poll(facts) if facts.is_polled else None,
    }


def _adaptive_poll(facts: StreamFacts) -> dict[str, Any]:
    cadence = facts.health.cadence
    return {
        "current_m1": cadence.m1,
        "current_m5": cadence.m5,
        "target_reason": cadence.reason,
        "tick_silence_seconds": _rounded(facts.silence),
    }


def market_status(facts: StreamFacts, calendar: Calendar) -> MarketStatusMessage:
    """Whether the market is open, and in how many seconds it opens; 0 when it is open."""
    now_ms = round(facts.now * 1000)
    opens_ms = calendar.next_open(now_ms)
    payload = {
        "state": "open" if calendar.is_open(now_ms) else "closed",
        "next_open_seconds": None if opens_ms is None else (opens_ms - now_ms) / 1000,
        "ts": facts.now,
        "price_snap_ts": facts.snap_ts,
        "tick_silence_seconds": _rounded(facts.silence),
    }
    return MarketStatusMessage(facts.exchange_id, facts.fence, payload)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
