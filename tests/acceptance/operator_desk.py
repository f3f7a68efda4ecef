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
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.acceptance.api_process import Api
    from tests.support.processes import Process

PATIENCE_SECONDS = 120.0
LISTED = "2026-01-01T00:00"


class Desk:
    """One collector. Verbs run in this process; what they speak to does not."""

    rest: Api
    """For those who started an API."""

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

    async def status(self) -> dict[str, Any]:
        """The troubles of `collector status` by kind. Its exit code has to fit them."""
        ended = await self.verb("status", "--json")
        assert ended.code in (0, 1), ended.err
        found = {each["kind"]: each for each in json.loads(ended.out)["troubles"]}
        assert ended.code == (1 if found else 0)
        return found

    async def exchange_has(self, *faults: dict[str, Any]) -> None:
        """From now on the exchange has these faults and no other."""
        await self._behind("PUT", "faults", list(faults))

    async def listing(self, operation: str, *symbols: str) -> None:
        """Delists these markets, so that the exchange does not know them, or relists them."""
        for symbol in symbols:
            change = {"op": operation, "symbol": symbol, "hidden": operation == "delist"}
            await self._behind("POST", "listings", change)

    async def requests(self) -> list[dict[str, Any]]:
        """Every request that the exchange saw since it was started."""
        entries: list[dict[str, Any]] = (await self._behind("GET", "journal"))["entries"]
        return entries

    async def _behind(self, method: str, path: str, body: Any = None) -> Any:
        """The exchange's back door."""
        url = f"{self.exchange_url}/sim/{path}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, json=body) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Desk]:
        """With an exchange, a worker and an API."""
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

    async def until(self, ask: Callable[[], Any], what: str) -> None:
        """As `until`; says what an operator would have seen when it never comes."""
        try:
            await until(ask, what, PATIENCE_SECONDS)
        except AssertionError as error:
            seen = (await self.verb("status")).out + (await self.verb("job", "list")).out
            raise AssertionError(f"{error}\n{seen}") from None

    async def troubles(self) -> dict[str, Any]:
        """Those of `/api/v1/troubles` by kind."""
        items = (await self.rest.get("/api/v1/troubles")).body["items"]
        return {each["kind"]: each for each in items}

    async def sees(self, kind: str, jobs: int = 0) -> Any:
        """The trouble, once the API lists it with so many jobs; `status` has to show it, too."""

        async def listed() -> bool:
            found = await self.troubles()
            return kind in found and found[kind]["jobs"] >= jobs

        await self.until(listed, f"there is {kind}")
        return (await self.status())[kind]

    async def sees_no_trouble(self) -> None:
        async def well() -> bool:
            return not await self.troubles()

        await self.until(well, "all is well")
        assert await self.status() == {}

    async def job(self, job_id: str) -> Any:
        return (await self.rest.get(f"/api/v1/jobs/{job_id}")).body

    async def succeeds(self, job_id: str, times: int = 1) -> None:
        """Returns when the job has succeeded so often in all."""

        async def enough() -> bool:
            return bool((await self.job(job_id))["stats"]["success"] >= times)

        await self.until(enough, "the job succeeds")


def desk_at(uri: str, database_name: str, root: Path) -> Desk:
    return Desk(uri, database_name, root, free_port())
