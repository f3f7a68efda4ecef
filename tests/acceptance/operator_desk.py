"""What an operator has: verbs in a terminal, and REST, on a collector of real processes."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import aiohttp

from tests.acceptance.api_process import api_process
from tests.support.free_ports import free_port
from tests.support.processes import program
from tests.support.until import until
from tests.support.verbs import Ended, run_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.acceptance.api_process import Api
    from tests.support.processes import Process

LISTED = "2026-01-01T00:00"


class Desk:
    """One collector. Verbs run in this process; what they speak to does not."""

    def __init__(self, uri: str, database_name: str, root: Path, exchange_port: int) -> None:
        self.exchange_url = f"http://127.0.0.1:{exchange_port}"
        self.settings = {
            "COLLECTOR_HOME": str(root / "home"),
            "COLLECTOR_MONGO_URI": uri,
            "COLLECTOR_MONGO_DB": database_name,
            "COLLECTOR_DATA": str(root / "lake"),
            "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": self.exchange_url}),
        }
        self._port = str(exchange_port)

    @asynccontextmanager
    async def exchange(self, *options: str) -> AsyncIterator[Process]:
        """The simulated exchange, always at the same address."""
        where = ("--port", self._port, "--listed", LISTED, "--symbols", "60")
        async with program("collector.simulated", *where, *options) as process:
            await process.address()
            yield process

    def worker(self, *options: str, **more: str) -> AbstractAsyncContextManager[Process]:
        return program("workers", *options, **self.settings, **more)

    def api(self, **more: str) -> AbstractAsyncContextManager[Api]:
        return api_process(**self.settings, **more)

    async def verb(self, *words: str) -> Ended:
        with mock.patch.dict(os.environ, self.settings):
            return await run_here(*words)

    async def asked(self, *words: str) -> Any:
        """What a verb answers that ends with 0."""
        return (await self.verb(*words, "--json")).facts

    async def troubles(self) -> dict[str, Any]:
        """Those of `collector status` by kind. Its exit code has to fit them."""
        ended = await self.verb("status", "--json")
        assert ended.code in (0, 1), ended.err
        found = {each["kind"]: each for each in json.loads(ended.out)["troubles"]}
        assert ended.code == (1 if found else 0)
        return found

    async def sees(self, kind: str) -> Any:
        """The trouble, once `status` shows it."""

        async def shown() -> Any:
            return (await self.troubles()).get(kind)

        return await until(shown, f"status shows {kind}")

    async def sees_no_trouble(self) -> None:
        async def well() -> bool:
            return not await self.troubles()

        await until(well, "status exits with 0")

    async def job(self, *words: str) -> Any:
        return await self.asked("job", "show", *words)

    async def succeeds(self, job_id: str) -> None:
        """Returns when the job has succeeded once more."""
        before = (await self.job(job_id))["stats"]["success"]

        async def once_more() -> bool:
            return bool((await self.job(job_id))["stats"]["success"] > before)

        await until(once_more, "the job succeeds")

    async def exchange_has(self, *faults: dict[str, Any]) -> None:
        """From now on the exchange has these faults and no other."""
        async with (
            aiohttp.ClientSession() as session,
            session.put(f"{self.exchange_url}/sim/faults", json=list(faults)) as response,
        ):
            assert response.status == 200, await response.text()

    async def requests(self) -> list[dict[str, Any]]:
        """Every request that the exchange saw since it was started."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.exchange_url}/sim/journal") as response,
        ):
            entries: list[dict[str, Any]] = (await response.json())["entries"]
            return entries


class WorkingDesk(Desk):
    """The same, with an exchange, an API and a worker that run."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[WorkingDesk]:
        async with AsyncExitStack() as stack:
            self._exchange = await stack.enter_async_context(AsyncExitStack())
            await self._exchange.enter_async_context(self.exchange())
            await stack.enter_async_context(self.worker())
            self.rest = await stack.enter_async_context(self.api())
            yield self

    async def exchange_goes(self) -> None:
        await self._exchange.aclose()

    async def exchange_comes(self, *options: str) -> None:
        await self._exchange.enter_async_context(self.exchange(*options))

    async def sees(self, kind: str) -> Any:
        """The trouble, once `status` and the API show it."""
        seen = await super().sees(kind)

        async def listed() -> bool:
            items = (await self.rest.get("/api/v1/troubles")).body["items"]
            return kind in {each["kind"] for each in items}

        await until(listed, f"/api/v1/troubles lists {kind}")
        return seen


def desk_at(uri: str, database_name: str, root: Path) -> WorkingDesk:
    return WorkingDesk(uri, database_name, root, free_port())
