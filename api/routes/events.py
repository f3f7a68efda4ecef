"""`/api/v1/events`: changes as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter
from starlette.responses import StreamingResponse

from api.deps import Parts
from api.feed import Listener
from api.roles import VIEWER

router = APIRouter(prefix="/api/v1/events", tags=["events"])

HEARTBEAT_SECONDS = 15.0
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`event: job` and `event: connector`, `data` their whole JSON as in lists; "
        "`event: circuit`, `data` the gate that moved; `event: history`, `data` how far a network "
        "has come; `event: price`, `event: heartbeat` and `event: market_status`, `data` as in "
        "`/live`; `event: trouble`, `data` the whole list as in `/troubles`, when it has changed",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.get(
    "",
    summary="Listen to changes",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=_CONTENT,
)
async def listen(parts: Parts) -> StreamingResponse:
    """Changes from now on: read the lists after the first comment has arrived.

    The stream ends when the listener is too slow or the database was away: connect and read the
    lists again. A comment every 15 seconds keeps the connection alive.
    """
    stack = AsyncExitStack()
    listener = await stack.enter_async_context(parts.feed.listening())
    return StreamingResponse(
        _frames(listener, stack),
        media_type="text/event-stream",
        headers={"X-Accel-Buffering": "no"},
    )


async def _frames(listener: Listener, stack: AsyncExitStack) -> AsyncIterator[bytes]:
    async with stack:
        yield b": listening\n\n"
        while not listener.ended:
            events = await listener.take(HEARTBEAT_SECONDS)
            if not events and not listener.ended:
                yield b": heartbeat\n\n"
            for event in events:
                yield b"event: %s\ndata: %s\n\n" % (event.name.encode(), event.data)
