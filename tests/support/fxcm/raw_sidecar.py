"""A sidecar without its client: lines in, lines out, read on demand."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from collector.exchanges.fxcm.interpreter import child_environment
from collector.exchanges.fxcm.process import PROGRAM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

_LEASE_MS = 60_000
_PATIENCE_SECONDS = 120


class RawSidecar:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.batches: list[dict[str, Any]] = []
        self._numbers = itertools.count(1)

    @property
    def ticks(self) -> list[list[Any]]:
        return [tick for batch in self.batches for tick in batch["ticks"]]

    @property
    def events(self) -> list[list[Any]]:
        return [event for batch in self.batches for event in batch["events"]]

    def send(self, op: str, *, lease_ms: float = _LEASE_MS, **fields: Any) -> int:
        number = next(self._numbers)
        request = {"id": number, "op": op, "lease_ms": lease_ms, **fields}
        self.send_bytes(json.dumps(request).encode() + b"\n")
        return number

    def send_bytes(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)

    async def line(self) -> dict[str, Any] | None:
        """The next line; None at the end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_PATIENCE_SECONDS):
            text = await self.process.stdout.readline()
        if not text:
            return None
        line: dict[str, Any] = json.loads(text)
        if "seq" in line:
            self.batches.append(line)
        return line

    async def answer(self, number: int) -> dict[str, Any]:
        """The answer to a request. Batches that come before it are kept."""
        while (line := await self.line()) is not None:
            if line.get("id") == number:
                return line
        raise AssertionError(f"the sidecar ended without an answer to {number}")

    async def ask(self, op: str, **fields: Any) -> Any:
        answer = await self.answer(self.send(op, **fields))
        assert "error" not in answer, answer
        return answer["result"]

    async def refusal(self, op: str, **fields: Any) -> dict[str, str]:
        answer = await self.answer(self.send(op, **fields))
        error: dict[str, str] = answer["error"]
        return error

    async def event(self, *beginning: str) -> list[Any]:
        """The first event that begins so."""
        length = len(beginning)
        while True:
            for event in self.events:
                if tuple(event[:length]) == beginning:
                    return event
            assert await self.line() is not None, f"no {beginning} before the end"

    async def ended(self) -> int:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while await self.line() is not None:
                pass
            return await self.process.wait()


@asynccontextmanager
async def raw_sidecar(python: Path, home: Path, **environ: str) -> AsyncIterator[RawSidecar]:
    home.mkdir(exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        python,
        PROGRAM,
        cwd=home,
        env={**child_environment(os.environ), **environ},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 24,
        start_new_session=True,
    )
    try:
        yield RawSidecar(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
