"""Which state a session is in, from what happened to it and whether the market is open. Pure.

logged in, market open    RECOVERING until data arrives, then STREAM
logged in, market closed  IDLE; when it opens, RECOVERING
anything failed           DISCONNECTED until the next login or the next data
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from collector.exchanges.exclusive import SessionState


@dataclass(frozen=True, slots=True)
class SessionHealth:
    """What is known of a session. `reason` is the last thing that changed it."""

    connected: bool = False
    flowing: bool = False
    """Whether data has arrived since the login, the last failure and the opening of the market."""
    failing: bool = False
    reason: str = "not logged in"

    def logged_in(self) -> SessionHealth:
        return SessionHealth(connected=True, reason="logged in")

    def data_arrived(self) -> SessionHealth:
        if not self.connected or (self.flowing and not self.failing):
            return self
        return replace(self, flowing=True, failing=False, reason="data arrives")

    def failed(self, reason: str) -> SessionHealth:
        """A login or a request failed; the session may live on."""
        return replace(self, flowing=False, failing=True, reason=reason)

    def ended(self, reason: str) -> SessionHealth:
        return SessionHealth(reason=reason)

    def market(self, *, is_open: bool) -> SessionHealth:
        """Nothing arrives while the market is closed."""
        if is_open or not self.flowing:
            return self
        return replace(self, flowing=False)

    def state(self, *, is_open: bool) -> SessionState:
        if not self.connected or self.failing:
            return SessionState.DISCONNECTED
        if not is_open:
            return SessionState.IDLE
        return SessionState.STREAM if self.flowing else SessionState.RECOVERING
