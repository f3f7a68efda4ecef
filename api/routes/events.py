"""`/api/v1/events`: changes as server-sent events."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query
from pydantic import BeforeValidator, Field
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from api.deps import Parts
from api.listener import EventFilter, Listener
from api.roles import VIEWER
from api.schemas.fields import ExchangeId, QueryFields
from collector.operations.connectors import check_exchange

router = APIRouter(prefix="/api/v1/events", tags=["events"])

HEARTBEAT_SECONDS = 15.0
EventName = Literal[
    "job", "connector", "circuit", "history", "trouble", "price", "heartbeat", "market_status"
]
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "`event: job` and `event: connector`, `data` their whole JSON as in lists; "
        "`event: circuit`, `data` the gate that moved; `event: history`, `data` how far a network "
        "has come; `event: price`, `event: heartbeat` and `event: market_status`, `data` as in "
        "`/live`; `event: trouble`, `data` the whole list as in `/troubles`, when it has changed; "
        "`event: gap`, `data` why what was missed cannot be sent: read the lists again. Each has "
        "an `id` to resume from",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def _split(value: Any) -> Any:
    """`types=job,price` is the same as `types=job&types=price`."""
    given = value if isinstance(value, list) else [value]
    return [word for each in given for word in str(each).split(",")]


class EventsAsked(QueryFields):
    """Which events; all of them by default."""

    types: Annotated[list[EventName], BeforeValidator(_split)] = Field(default_factory=list)
    """Only events of these names, repeated or with commas between"""
    exchange_id: Annotated[list[ExchangeId], Field(max_length=100)] = Field(default_factory=list)
    """Only events about these exchanges, and troubles"""

    def filter(self) -> EventFilter:
        for each in self.exchange_id:
            check_exchange(each)
        return EventFilter(frozenset(self.types), frozenset(self.exchange_id))


LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        max_length=1024,
        description="The `id` of the last event that was received: what changed since then comes "
        "first, or an event `gap`",
    ),
]


@router.get(
    "",
    summary="Listen to changes",
    dependencies=[VIEWER],
    response_class=StreamingResponse,
    responses=_CONTENT,
)
async def listen(
    asked: Annotated[EventsAsked, Query()], parts: Parts, since: LastEventId = None
) -> StreamingResponse:
    """Changes from now on: read the lists after the first comment has arrived.

    The stream ends when the listener is too slow or the database was away: connect again with
    `Last-Event-ID`, as browsers do by themselves, and nothing is missed. A comment every 15 seconds
    keeps the connection alive.
    """
    stack = AsyncExitStack()
    listener = await stack.enter_async_context(parts.feed.listening(asked.filter(), since))
    return EventStream(listener, stack)


class EventStream(StreamingResponse):
    """The answer of one listener, which leaves the feed however the answer ends."""

    def __init__(self, listener: Listener, stack: AsyncExitStack) -> None:
        super().__init__(
            _frames(listener),
            media_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )
        self._stack = stack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._stack:
            await super().__call__(scope, receive, send)


async def _frames(listener: Listener) -> AsyncIterator[bytes]:
    reached = listener.position
    yield b": listening\n%s\n" % _id(reached)
    while not listener.ended:
        events = await listener.take(HEARTBEAT_SECONDS)
        before, reached = reached, listener.position
        if not events and not listener.ended:
            yield b": heartbeat\n%s\n" % _id(reached)
        for at, event in enumerate(events, start=1):
            # Only with the last of them is everything up to the new place there.
            place = _id(reached if at == len(events) else before)
            yield b"%sevent: %s\ndata: %s\n\n" % (place, event.name.encode(), event.data)


def _id(place: str | None) -> bytes:
    return b"" if place is None else b"id: %s\n" % place.encode()
