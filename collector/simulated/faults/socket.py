"""Faults of a websocket: it sends nothing, or it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from collector.simulated.faults.record import RequestFault

SOCKET = "socket"
"""The endpoint name for rounds of a websocket."""


@dataclass(frozen=True, kw_only=True)
class SocketFault(RequestFault):
    """Strikes the rounds in which a websocket sends what is new."""


@dataclass(frozen=True, kw_only=True)
class SocketSilence(SocketFault):
    """Nothing is sent, and the connection stays open."""

    kind: Literal["socket_silence"] = "socket_silence"


@dataclass(frozen=True, kw_only=True)
class SocketDisconnect(SocketFault):
    """The connection is reset."""

    kind: Literal["socket_disconnect"] = "socket_disconnect"
