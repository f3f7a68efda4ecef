"""The states of a stream as its heartbeat shows them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from collector.exchanges.exclusive import SessionState

OK_SECONDS = 10.0
STALE_SECONDS = 30.0
RECOVERING_SECONDS = 60.0


class Connection(StrEnum):
    """What a feed is doing about its connection."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    """Subscribed; nothing has arrived yet."""
    LIVE = "live"
    BROKEN = "broken"
    """The last attempt failed, and the next one is waited for."""
    CLOSED = "closed"


class PriceState(StrEnum):
    OK = "ok"
    WAITING = "waiting"
    STALE = "stale"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Since:
    """A state and when it began, in epoch seconds."""

    state: SessionState
    at: float

    def then(self, state: SessionState, now: float) -> Since:
        return self if state is self.state else Since(state, now)


def diagnosis(
    connection: Connection,
    silence: float | None,
    *,
    is_open: bool,
    session: SessionState | None = None,
) -> SessionState:
    """`silence` is in seconds since the last tick, None before the first.

    `session` is the state of the session that history is requested in, where the exchange has one:
    ticks alone make no STREAM while history fails, or while nothing has arrived since a login.
    """
    if connection in (Connection.BROKEN, Connection.CLOSED):
        return SessionState.DISCONNECTED
    if session is SessionState.DISCONNECTED:
        return SessionState.DISCONNECTED
    if not is_open:
        return SessionState.IDLE
    if session is SessionState.RECOVERING:
        return SessionState.RECOVERING
    if connection is not Connection.LIVE or silence is None or silence > RECOVERING_SECONDS:
        return SessionState.RECOVERING
    return SessionState.IDLE if silence > STALE_SECONDS else SessionState.STREAM


def price_state(before: PriceState, silence: float | None, *, stopped: bool = False) -> PriceState:
    """Between the two limits a stream stays what it was: neither flickers."""
    if stopped:
        return PriceState.STOPPED
    if silence is None:
        return PriceState.WAITING
    if silence < OK_SECONDS:
        return PriceState.OK
    if silence > STALE_SECONDS:
        return PriceState.STALE
    return before if before is PriceState.STALE else PriceState.OK
