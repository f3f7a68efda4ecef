"""The simulated exchange and workers as processes of their own, and what each of them costs."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp

from collector.connectors.registry import ConnectorRegistry
from tests.support.processes import Process, program

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.connectors.connector import Limits
    from collector.mongo.client import Database
    from tests.bench.harness import Bench

EXCHANGE = "simulated"
PLENTY = 1_000_000
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process has used so far."""

    cpu_s: float
    peak_mb: float

    def since(self, before: Cost) -> Cost:
        return Cost(self.cpu_s - before.cpu_s, self.peak_mb)


@dataclass(frozen=True, slots=True)
class Stage:
    """One exchange, one database, one lake, and the workers on them."""

    database: Database
    root: Path
    url: str
    exchange: Process
    workers: list[Process]
    mongod_pid: int
    _environment: dict[str, str]
    _stack: AsyncExitStack

    async def start_worker(self, *arguments: str, **settings: str) -> Process:
        worker = await self._stack.enter_async_context(
            program("workers", *arguments, **{**self._environment, **settings})
        )
        self.workers.append(worker)
        return worker

    async def start_api(self) -> str:
        """An API process on the same database and lake; returns where it answers."""
        api = await self._stack.enter_async_context(
            program("api", "--port", "0", **self._environment)
        )
        return await api.address()

    async def workers_are_up(self) -> None:
        """Four interpreters that start on two cores would be measured instead of the budget."""
        async with asyncio.timeout(60):
            while await self.database.workers.count_documents({}) < len(self.workers):
                await asyncio.sleep(0.05)

    def costs(self) -> dict[str, Cost]:
        """By kind of process; the workers' memory is the largest one's."""
        each = [cost_of(worker.pid) for worker in self.workers]
        workers = Cost(sum(c.cpu_s for c in each), max((c.peak_mb for c in each), default=0.0))
        return {
            "workers": workers,
            "mongod": cost_of(self.mongod_pid),
            "exchange": cost_of(self.exchange.pid),
        }

    async def told(self, path: str) -> Any:
        """An answer of the exchange's back door."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/sim/{path}") as r:
            return await r.json()

    async def journal(self) -> list[dict[str, Any]]:
        """Every request the exchange saw, in order of arrival."""
        entries: list[dict[str, Any]] = []
        last = 0
        while True:
            page = await self.told(f"journal?since={last}")
            if not page["entries"]:
                return entries
            entries += page["entries"]
            last = page["next"]


@asynccontextmanager
async def stage(bench: Bench, limits: Limits, *exchange_options: str) -> AsyncIterator[Stage]:
    """Everything but the workers. The connector has these limits and no others."""
    async with AsyncExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="collector-lake-")))
        database = await stack.enter_async_context(bench.database())
        await ConnectorRegistry(database).ensure(EXCHANGE, limits)
        exchange = await stack.enter_async_context(
            program("collector.simulated", "--port", "0", *exchange_options)
        )
        url = await exchange.address()
        status = await database.raw.client.admin.command("serverStatus")
        environment = {
            "COLLECTOR_MONGO_URI": bench.uri,
            "COLLECTOR_MONGO_DB": database.raw.name,
            "COLLECTOR_DATA": str(root),
            "COLLECTOR_EXCHANGE_URLS": json.dumps({EXCHANGE: url}),
            "COLLECTOR_LOGGING__LEVEL": "WARNING",
        }
        yield Stage(database, root, url, exchange, [], int(status["pid"]), environment, stack)


def cost_of(pid: int) -> Cost:
    """From /proc: all its threads' time in and below the program, and its largest memory."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    status = Path(f"/proc/{pid}/status").read_text("utf-8")
    peak_kb = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
    return Cost((int(fields[11]) + int(fields[12])) / _TICKS, peak_kb / 1024)
