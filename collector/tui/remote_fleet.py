"""A fleet, watched over REST and server-sent events: the API is all that has to be reachable."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import aiohttp

from collector.backoff import Backoff
from collector.errors import ConfigError, RetryLater
from collector.tui.fleet_picture import FleetPicture, with_event, with_figures, with_lists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from pydantic import SecretStr

MOST_JOBS = 2_000
MOST_LIVE = 2_000
PAGE = 1_000
TIMEOUT_SECONDS = 10.0
SILENCE_SECONDS = 45.0
"""The API sends a comment every 15 s; a stream that is quiet for longer has died."""
AGAIN = Backoff(base_seconds=0.5, max_seconds=10.0)


class RemoteFleet:
    """Keeps `picture` up to date. Every failure is shown in `picture.trouble` and tried again."""

    def __init__(
        self, url: str, token: SecretStr | None, spread: Callable[[], float], figures_every: float
    ) -> None:
        self.url = url.rstrip("/")
        self.picture = FleetPicture()
        self._token = token
        self._spread = spread
        self._figures_every = figures_every

    async def follow(self) -> None:
        """Until cancelled. Raises ConfigError when the API refuses the token."""
        failures = 0
        while True:
            try:
                async with self._session() as session, _listening(session) as stream:
                    # Only then are no changes missed between the lists and the events.
                    await self._read_lists(session)
                    failures = 0
                    await self._read_on(session, stream)
            except (aiohttp.ClientError, TimeoutError, OSError, RetryLater, ValueError) as error:
                failures += 1
                self.picture = replace(self.picture, trouble=f"{self.url}: {_words(error)}")
            await asyncio.sleep(AGAIN.delay(max(1, failures), self._spread()))

    def _session(self) -> aiohttp.ClientSession:
        headers = {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token.get_secret_value()}"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=TIMEOUT_SECONDS)
        # Lines of events carry whole documents.
        return aiohttp.ClientSession(
            self.url, headers=headers, timeout=timeout, read_bufsize=2**20, max_line_size=2**16
        )

    async def _read_lists(self, session: aiohttp.ClientSession) -> None:
        connectors, _ = await _pages(session, "connectors", PAGE)
        jobs, more = await _pages(session, "jobs", MOST_JOBS)
        workers, _ = await _pages(session, "workers", PAGE, limited=False)
        live, _ = await _pages(session, "live", MOST_LIVE)
        self.picture = with_lists(
            self.picture,
            connectors=connectors,
            jobs=jobs,
            more_jobs=more,
            workers=workers,
            live=live,
        )

    async def _read_on(self, session: aiohttp.ClientSession, stream: aiohttp.StreamReader) -> None:
        """Until the stream ends or something fails."""
        tasks = {
            asyncio.create_task(self._read_figures(session)),
            asyncio.create_task(self._read_events(stream)),
        }
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_events(self, stream: aiohttp.StreamReader) -> None:
        async for name, data in _events(stream):
            self.picture = with_event(self.picture, name, data)

    async def _read_figures(self, session: aiohttp.ClientSession) -> None:
        """Budgets and signs of life, which change without an event."""
        while True:
            await asyncio.sleep(self._figures_every)
            connectors, _ = await _pages(session, "connectors", PAGE)
            workers, _ = await _pages(session, "workers", PAGE, limited=False)
            self.picture = with_figures(self.picture, connectors, workers)


@asynccontextmanager
async def _listening(session: aiohttp.ClientSession) -> AsyncIterator[aiohttp.StreamReader]:
    """The stream of events, when the server listens to changes."""
    async with session.get("/api/v1/events") as response:
        await _check(response)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            first = await response.content.readline()
        if not first.startswith(b":"):
            raise RetryLater("this is not the API of a collector")
        yield response.content


async def _events(stream: aiohttp.StreamReader) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    while True:
        async with asyncio.timeout(SILENCE_SECONDS):
            line = await stream.readline()
        if not line:
            raise RetryLater("the stream of events has ended")
        if line.startswith(b"event:"):
            name = line.removeprefix(b"event:").strip().decode()
        elif line.startswith(b"data:"):
            yield name, json.loads(line.removeprefix(b"data:"))


async def _pages(
    session: aiohttp.ClientSession, noun: str, most: int, *, limited: bool = True
) -> tuple[list[dict[str, Any]], bool]:
    """Items of a list, and whether there are more than were read."""
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        asked: dict[str, str] = {"limit": str(min(PAGE, most))} if limited else {}
        if cursor is not None:
            asked["cursor"] = cursor
        page = await _answer(session, f"/api/v1/{noun}", asked)
        items += page["items"]
        cursor = page.get("next_cursor")
        if cursor is None or len(items) >= most:
            return items[:most], cursor is not None


async def _answer(session: aiohttp.ClientSession, path: str, asked: Mapping[str, str]) -> Any:
    async with asyncio.timeout(TIMEOUT_SECONDS), session.get(path, params=asked) as response:
        await _check(response)
        return await response.json()


async def _check(response: aiohttp.ClientResponse) -> None:
    if response.status in (401, 403):
        raise ConfigError("the API does not accept this key: set COLLECTOR_TOKEN to another one")
    if response.status == 404:
        raise RetryLater(f"the API has no {response.url.path}: it is of another version")
    if response.status >= 400:
        raise RetryLater(f"the API answers {response.status}")


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectionError):
        return "no API answers there; `collector up` starts one, --plain reads the database"
    return str(error).partition("\n")[0] or type(error).__name__
