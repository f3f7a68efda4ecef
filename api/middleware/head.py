"""HEAD is GET without the body, on every path that has GET."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class Head:
    """Runs the GET and lets its headers out. A streamed answer ends after its first piece."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        answered = asyncio.Event()

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                return
            answered.set()
            if message.get("more_body"):
                await asyncio.sleep(0)

        # In place: what layers inside write into the scope is for those outside.
        scope["method"] = "GET"
        task = asyncio.ensure_future(self._app(scope, receive, without_body))
        waiting = asyncio.create_task(answered.wait())
        try:
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
            if not task.cancelled():
                task.result()
            await send({"type": "http.response.body", "body": b""})
        finally:
            waiting.cancel()
            task.cancel()
            scope["method"] = "HEAD"
