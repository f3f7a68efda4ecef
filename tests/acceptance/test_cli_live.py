"""Operating a running collector from another terminal."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Any

from tests.support.until import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def demo(home: Path) -> AsyncIterator[Path]:
    """`collector up --demo`, stopped with Ctrl-C at the end; yields the file of what it says."""
    said = home / "said.txt"
    with said.open("wb") as out:
        process = await _start(home, out, "up", "--demo", "--port", "0")
    try:
        yield said
    finally:
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(120):
            await process.wait()
    assert process.returncode == 0


async def _start(home: Path, out: IO[bytes] | int, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "collector.cli",
        *arguments,
        cwd=home,
        env={**os.environ, "COLLECTOR_HOME": str(home)},
        stdout=out,
        start_new_session=True,
    )


async def ask(home: Path, *arguments: str) -> Any:
    """What a verb answers about the demo; None while there is nothing to speak to."""
    process = await _start(home, asyncio.subprocess.PIPE, *arguments, "--demo", "--json")
    out, _ = await process.communicate()
    return json.loads(out) if out else None  # `status` exits with 1 when something is wrong.


async def test_jobs_obey_the_command_line_while_workers_run(tmp_path: Path) -> None:
    async with demo(tmp_path) as said:

        async def migrated() -> bool:
            return "API on" in said.read_text("utf-8")

        # A verb before that would start a database of its own.
        await until(migrated, "the demo is up")

        async def busy() -> bool:
            found = await ask(tmp_path, "status")
            return bool(found) and len(found["workers"]) == 2 and found["backfills"]["bars"] > 0

        await until(busy, "two workers are at it")
        listed = await ask(tmp_path, "job", "list", "--type", "ohlcv_backfill")
        job, other = (item["id"] for item in listed["items"][:2])

        [paused] = (await ask(tmp_path, "job", "pause", job))["items"]
        assert paused["status"] == "paused"

        async def put_down() -> bool:
            return (await ask(tmp_path, "job", "show", job))["state"] == "idle"

        await until(put_down, "the worker puts the paused job down")
        reached = (await ask(tmp_path, "job", "show", job))["cursor"]["since_ms"]
        await ask(tmp_path, "job", "remove", other)
        assert (await ask(tmp_path, "job", "show", job))["cursor"]["since_ms"] == reached

        await ask(tmp_path, "job", "resume", job)

        async def further() -> bool:
            return (await ask(tmp_path, "job", "show", job))["cursor"]["since_ms"] > reached

        await until(further, "the resumed job goes on where it was")
        assert (await ask(tmp_path, "job", "show", other))["status"] == "deleted"
        stopped = await ask(tmp_path, "connector", "pause", "simulated")
        assert stopped["stopped"]["reason"] == "paused"
        bars = await ask(tmp_path, "read", "simulated", "BTC/USDT", "1m", "--limit", "5")
        assert len(bars["rows"]) == 5
