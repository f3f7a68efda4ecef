"""A dead exchange with one series, as a user sees it: `up` in a pipe, `status`, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from typing import IO, TYPE_CHECKING

from tests.support.until import until

if TYPE_CHECKING:
    from pathlib import Path


async def started(
    home: Path, url: str, out: IO[bytes] | int, *verb: str
) -> asyncio.subprocess.Process:
    environment = {
        **os.environ,
        "COLLECTOR_HOME": str(home),
        "COLLECTOR_EXCHANGE_URLS": json.dumps({"simulated": url}),
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "collector.cli", *verb),
        cwd=home,
        env=environment,
        stdout=out,
        start_new_session=True,
    )


async def test_up_and_status_name_an_exchange_that_does_not_answer(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # Bound and not listening: every connection is refused.
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        shown = tmp_path / "shown.txt"
        with shown.open("wb") as out:
            up = await started(tmp_path, url, out, "up", "--port", "0", "--workers", "1")
        try:
            await until(lambda: "API on" in shown.read_text("utf-8"), "it is up")
            added = await started(
                tmp_path, url, asyncio.subprocess.DEVNULL, "add", "simulated", "BTC/USDT"
            )
            assert await added.wait() == 0
            began = "! simulated: unreachable"
            await until(lambda: began in shown.read_text("utf-8"), "the pipe names it")
            asked = await started(tmp_path, url, asyncio.subprocess.PIPE, "status")
            words = (await asked.communicate())[0].decode()
        finally:
            up.send_signal(signal.SIGINT)
            async with asyncio.timeout(120):
                await up.wait()
    assert asked.returncode == 1
    assert "simulated: unreachable" in words
    assert "collector connector show simulated" in words
    assert up.returncode == 0
    assert shown.read_text("utf-8").rstrip().endswith("shows what there is")
