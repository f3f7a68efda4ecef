"""The processes that `collector up` keeps running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from typing import TYPE_CHECKING

from collector.backoff import Backoff
from collector.operations.processes import command, die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

RESTART = Backoff(base_seconds=1.0, max_seconds=30.0)
LARGEST_LOG = 10_000_000
LOG_CHECK_SECONDS = 5.0


class Child:
    """One program, started again when it ends by itself."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: list[str],
        *,
        environment: Mapping[str, str],
        log: Path,
        report: Callable[[str], None],
    ) -> None:
        self.name = name
        self.restarts = 0
        self._command = command(module, *arguments)
        self._environment = dict(environment)
        self._log = log
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False
        self.started = asyncio.Event()

    async def keep_running(self) -> None:
        """Runs until it is stopped or cancelled."""
        while not self._stopping:
            code = await self._run_once()
            if self._stopping:
                return
            self.restarts += 1
            pause = RESTART.delay(self.restarts, 0.5)
            self._report(f"{self.name} ended with code {code}; starting it again ({self._log})")
            await asyncio.sleep(pause)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends it; it is not started again."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _run_once(self) -> int:
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=log,
                # Its own session: Ctrl-C in the terminal is ours to pass on.
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        self.started.set()
        try:
            return await self._ended(self._process)
        except asyncio.CancelledError:
            self._process.kill()
            await self._process.wait()
            raise

    async def _ended(self, process: asyncio.subprocess.Process) -> int:
        """Its exit code, when it has one. Keeps its log small until then."""
        ending = asyncio.ensure_future(process.wait())
        while not ending.done():
            await asyncio.wait([ending], timeout=LOG_CHECK_SECONDS)
            await asyncio.to_thread(cut_log, self._log, LARGEST_LOG)
        return ending.result()


def cut_log(log: Path, longest: int) -> None:
    """Moves the lines of a log that is too long to `*.log.old`; its program writes on.

    The program keeps the file open, so it is emptied and not replaced. What is written between
    the copy and that is lost: microseconds, every ten megabytes.
    """
    with contextlib.suppress(OSError):
        if log.stat().st_size > longest:
            shutil.copyfile(log, log.with_suffix(".log.old"))
            os.truncate(log, 0)
