"""Closes what the MongoDB driver leaves open when a client is closed while it connects.

The driver forgets a socket whose connecting was cancelled. It is collected some time later, in a
test that never saw it, and there the warning fails.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pymongo import pool_shared

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

_connect = pool_shared._async_create_connection


async def connected(address: Any, options: Any) -> socket.socket:
    """As the driver connects, to the end; nobody may want the socket by then."""
    connecting = asyncio.ensure_future(_connect(address, options))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_closed)
        raise


def _closed(connecting: asyncio.Future[socket.socket]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close()


@contextmanager
def closing_driver_sockets() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool_shared, "_async_create_connection", connected)
        yield
