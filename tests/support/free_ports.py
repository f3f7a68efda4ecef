"""Ports of loopback for servers that a test starts, stops and starts again.

They lie below those that the system gives to outgoing connections: while such a server is away, a
client of any other test could be given its port, or connect to itself.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

_PORTS = range(20_000, 28_000)


def free_ports(count: int) -> list[int]:
    """So many different ones that nobody uses."""
    found: list[int] = []
    with ExitStack() as stack:
        while len(found) < count:
            port, probe = random.choice(_PORTS), stack.enter_context(socket.socket())
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            found.append(port)
    return found


def free_port() -> int:
    [port] = free_ports(1)
    return port
