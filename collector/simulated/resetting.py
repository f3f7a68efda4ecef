"""Ends a client's connection the rude way: with a reset instead of an end."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

_ABORTS = struct.pack("ii", 1, 0)  # Linger for zero seconds: closing sends a reset.


def reset(request: web.BaseRequest) -> None:
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORTS)
    transport.abort()
