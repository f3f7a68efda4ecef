"""A fleet, watched over REST and server-sent events: the API is all that has to be reachable."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collector.backoff import Backoff
from collector.errors import RetryLater
from collector.remote.api_client import PAGE, ApiAddress
from collector.tui.fleet_picture import FleetPicture, with_event, with_figures, with_lists

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from pydantic import SecretStr

    from collector.remote.api_client import ApiClient

MOST_JOBS = 2_000
MOST_LIVE = 2_000
AGAIN = Backoff(base_seconds=0.5, max_seconds=10.0)


class RemoteFleet:
    """Keeps `picture` up to date. Every failure is shown in `picture.trouble` and tried again."""

    def __init__(
        self, url: str, token: SecretStr | None, spread: Callable[[], float], figures_every: float
    ) -> None:
        self.picture = FleetPicture()
        self.url = url.rstrip("/")
        self._address = ApiAddress.of(self.url, token)
        self._spread = spread
        self._figures_every = figures_every

    async def follow(self) -> None:
        """Until cancelled. Raises ApiRefused when the API does not accept the token."""
        failures = 0
        while True:
            try:
                async with self._address.opened() as api, api.events() as events:
                    # Only then are no changes missed between the lists and the events.
                    await self._read_lists(api)
                    failures = 0
                    await self._read_on(api, events)
            except (RetryLater, TimeoutError, OSError, ValueError) as error:
                failures += 1
                words = str(error).partition("\n")[0] or type(error).__name__
                self.picture = replace(self.picture, trouble=words)
            await asyncio.sleep(AGAIN.delay(max(1, failures), self._spread()))

    async def _read_lists(self, api: ApiClient) -> None:
        connectors, _ = await api.items("connectors", PAGE)
        jobs, more = await api.items("jobs", MOST_JOBS)
        workers = (await api.get("workers"))["items"]
        live, _ = await api.items("live", MOST_LIVE)
        self.picture = with_lists(
            self.picture,
            connectors=connectors,
            jobs=jobs,
            more_jobs=more,
            workers=workers,
            live=live,
        )

    async def _read_on(self, api: ApiClient, events: AsyncIterator[tuple[str, Any]]) -> None:
        """Until the stream ends or something fails."""
        tasks = {
            asyncio.create_task(self._read_figures(api)),
            asyncio.create_task(self._read_events(events)),
        }
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_events(self, events: AsyncIterator[tuple[str, Any]]) -> None:
        async for name, data in events:
            self.picture = with_event(self.picture, name, data)

    async def _read_figures(self, api: ApiClient) -> None:
        """Budgets and signs of life, which change without an event."""
        while True:
            await asyncio.sleep(self._figures_every)
            connectors, _ = await api.items("connectors", PAGE)
            workers = (await api.get("workers"))["items"]
            self.picture = with_figures(self.picture, connectors, workers)
