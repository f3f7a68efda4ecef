"""Real processes for the acceptance tests: started, watched, and gone at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

ROOT = Path(__file__).parents[2]


class Process:
    """One program under test, its stderr kept as JSON log lines."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    async def ended(self, seconds: float = 120) -> int:
        async with asyncio.timeout(seconds):
            return await self._process.wait()

    async def output(self) -> str:
        """All of its standard output; ends with the process."""
        assert self._process.stdout is not None
        return (await self._process.stdout.read()).decode()

    async def address(self, seconds: float = 120) -> str:
        """Where it listens, from the line in which it prints that."""
        assert self._process.stdout is not None
        async with asyncio.timeout(seconds):
            line = (await self._process.stdout.readline()).decode()
        if "http://" not in line:
            raise AssertionError(f"it does not listen: {self.said}")
        return line[line.index("http://") :].strip()

    async def line(self, seconds: float = 120) -> str:
        """The next line of its standard output."""
        assert self._process.stdout is not None
        async with asyncio.timeout(seconds):
            return (await self._process.stdout.readline()).decode().strip()

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Its log lines of one event."""
        entries = []
        for line in self._log.read_text("utf-8").splitlines():
            with suppress(ValueError):
                entries.append(json.loads(line))
        return [entry for entry in entries if entry.get("event") == event]

    @property
    def said(self) -> str:
        return self._log.read_text("utf-8")


@asynccontextmanager
async def program(*arguments: str, **environment: str) -> AsyncIterator[Process]:
    """`python -m ...` with these settings, killed at the end if it still runs."""
    file = tempfile.NamedTemporaryFile(suffix=".log", delete=False)  # noqa: SIM115
    with file:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *arguments,
            cwd=ROOT,
            env={**os.environ, "COLLECTOR_LOGGING__FORMAT": "json", **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=file,
        )
    running = Process(process, Path(file.name))
    try:
        yield running
    finally:
        if running.running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
        await process.communicate()
        Path(file.name).unlink()


async def patiently(question: Awaitable[bool]) -> bool:
    """An answer of no while the database is away."""
    try:
        return await question
    except DatabaseUnavailable:
        return False
