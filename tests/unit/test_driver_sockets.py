"""No socket of the driver stays open, whenever its client was given up."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from pymongo.pool_options import PoolOptions

from tests.support.driver_sockets import connected
from tests.support.until import until

STEPS = 8
"""Of the loop, in which connecting has come to its end."""


@pytest.mark.parametrize("steps", range(STEPS + 1))
async def test_a_cancelled_connection_is_closed(
    steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[socket.socket] = []

    class Noted(socket.socket):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            opened.append(self)

    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setattr(socket, "socket", Noted)
        connecting = asyncio.create_task(connected(server.getsockname(), PoolOptions()))
        for _ in range(steps):
            await asyncio.sleep(0)
        connecting.cancel()
        await asyncio.wait([connecting])
        if not connecting.cancelled():
            connecting.result().close()
        await until(lambda: all(each.fileno() < 0 for each in opened), "every socket is closed")
