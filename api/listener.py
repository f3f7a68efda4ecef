"""One client's view of the feed: what it wants, what it has not taken yet, and how far it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

MOST_HELD = 4096


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """Something as it is now: `name` is job, connector, circuit, history, trouble, gap or a kind of
    `live`.
    """

    name: str
    key: str
    data: bytes
    exchange_id: str | None = None
    """The exchange that it is about, if it is about one."""


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a listener wants; all of them by default."""

    names: frozenset[str] = frozenset()
    exchange_ids: frozenset[str] = frozenset()

    def takes(self, event: ServerEvent) -> bool:
        """Troubles are about everything, and a gap is for everyone."""
        if event.name == "gap":
            return True
        if self.names and event.name not in self.names:
            return False
        whole = event.name == "trouble"
        return not self.exchange_ids or whole or event.exchange_id in self.exchange_ids


class Listener:
    """What has changed and was not taken yet. An event carries the whole document, so of several
    about one thing only the newest is kept.
    """

    def __init__(self, wanted: EventFilter | None = None, position: str | None = None) -> None:
        self._wanted = wanted or EventFilter()
        self._held: dict[tuple[str, str], ServerEvent] = {}
        self._arrived = asyncio.Event()
        self.position = position
        """Everything up to here was taken or is held; what a client resumes from."""
        self.ended = False

    def offer(self, event: ServerEvent) -> None:
        if not self._wanted.takes(event):
            return
        self._held[event.name, event.key] = event
        if len(self._held) > MOST_HELD:
            self.end()
        self._arrived.set()

    def end(self) -> None:
        self.ended = True
        self._arrived.set()

    async def take(self, seconds: float) -> list[ServerEvent]:
        """What has happened since the last time; empty when nothing did for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._arrived.wait()
        except TimeoutError:
            return []
        self._arrived.clear()
        events, self._held = list(self._held.values()), {}
        return events
