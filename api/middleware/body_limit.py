"""Bodies end at a limit, whether they announce their length or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from api import problems

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_BODY = 1024 * 1024


class BodyLimit:
    """Refuses a larger body with 413, before reading it where its length is announced."""

    def __init__(self, app: ASGIApp, *, largest: int = LARGEST_BODY) -> None:
        self._app = app
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = Headers(scope=scope).get("content-length", "0")
        if not (announced.isascii() and announced.isdigit()) or int(announced) > self._largest:
            refusal = self._refusal()
            response = problems.problem_response(413, refusal.code, refusal.detail)
            await response(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._largest:
                raise self._refusal()
            return message

        await self._app(scope, receive_limited, send)

    def _refusal(self) -> problems.Refusal:
        return problems.Refusal(
            413, "body_too_large", f"a body may have {self._largest} bytes at most"
        )
