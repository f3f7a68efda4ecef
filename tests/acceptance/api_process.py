"""The API as a process of its own, and requests to it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from tests.support.local_api import Answer
from tests.support.processes import Process, program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database


@dataclass(frozen=True)
class Api:
    """One API process. Paths are below `/api/v1` unless they are the process's own."""

    process: Process
    session: aiohttp.ClientSession

    async def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        async with self.session.request(method, path, json=body, params=query) as response:
            return Answer(response.status, response.headers, await response.json(content_type=None))

    async def get(self, path: str, **query: Any) -> Answer:
        return await self("GET", path, **query)

    async def post(self, path: str, body: Any = None) -> Answer:
        return await self("POST", path, body)

    @property
    def peak_mb(self) -> float:
        """The most memory it has ever held, by the kernel's own account."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024


def settings_of(database: Database, mongo_uri: str, home: Path) -> dict[str, str]:
    """Of a process on a test's database, with a home of its own."""
    return {
        "COLLECTOR_MONGO_URI": mongo_uri,
        "COLLECTOR_MONGO_DB": database.raw.name,
        "COLLECTOR_HOME": str(home),
    }


@asynccontextmanager
async def api_process(**environment: str) -> AsyncIterator[Api]:
    """An API on a free port that answers, killed at the end if it still runs."""
    async with program("api", "--port", "0", **environment) as process:
        url = await process.address()
        async with aiohttp.ClientSession(url, timeout=aiohttp.ClientTimeout(total=300)) as session:
            yield Api(process, session)
