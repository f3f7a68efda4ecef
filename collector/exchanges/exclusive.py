"""An account that can be logged in only once at a time.

One worker of the fleet holds the right to the session (connectors/session_lease.py). The adapter
checks that right before it logs in, and reports the state of the session.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class SessionState(StrEnum):
    """What a session is doing, for observers."""

    STREAM = "STREAM"
    """Logged in, the market is open, and data arrives."""
    IDLE = "IDLE"
    """Logged in, and the market is closed."""
    DISCONNECTED = "DISCONNECTED"
    """Not logged in, or the last login or request failed."""
    RECOVERING = "RECOVERING"
    """Logged in, and no data has arrived since."""


class SessionRight(Protocol):
    """The right to an account's only session, as far as this process has it."""

    def left(self) -> float:
        """For how many more seconds it holds; 0 when this process does not have it."""

    def report(self, state: SessionState, reason: str) -> None:
        """The session's state is this one from now on."""

    def diagnose(self, diag: Mapping[str, Any]) -> None:
        """What else there is to know of it, shown beside its state: pauses after failures."""
