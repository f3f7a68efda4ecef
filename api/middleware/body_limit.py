"""Bodies end at a limit, whether they announce their length or not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from api import problems

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MIB = 1024 * 1024
LARGEST_BODY = MIB
LARGEST_EVENTS_BODY = 32 * MIB
"""As many events of a network as one request may have, each as long as can be."""
MOST_DISCARDED = 64 * MIB
"""What is read of a body that is refused: a client that sends everything before it reads would
otherwise get a reset connection instead of the answer."""
_EVENTS = re.compile(r"/api/v1/history/[^/]+/events")


class BodyLimit:
    """Refuses a larger body with 413."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        largest = LARGEST_EVENTS_BODY if _EVENTS.fullmatch(scope["path"]) else LARGEST_BODY
        refusal = problems.Refusal(
            413, "body_too_large", f"a body may have {largest:,} bytes here at most"
        )
        announced = Headers(scope=scope).get("content-length", "0")
        if not (announced.isascii() and announced.isdigit()) or int(announced) > largest:
            await _discard(receive)
            response = problems.problem_response(413, refusal.code, refusal.detail)
            await response(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > largest:
                if message.get("more_body"):
                    await _discard(receive)
                raise refusal
            return message

        await self._app(scope, receive_limited, send)


async def _discard(receive: Receive) -> None:
    left = MOST_DISCARDED
    while left > 0:
        message = await receive()
        if not message.get("more_body"):
            return
        left -= len(message["body"])
