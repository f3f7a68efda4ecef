"""Verbs of the command line, and what is left of one that has run."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector import logs
from collector.cli.main import app, run

if TYPE_CHECKING:
    from pathlib import Path

    import typer


@dataclass(frozen=True, slots=True)
class Ended:
    """A verb that has run."""

    code: int
    out: str
    err: str

    @property
    def facts(self) -> Any:
        assert self.code == 0, self.err
        assert self.out.count("\n") == 1, "JSON stands alone on standard output"
        return json.loads(self.out)


async def run_here(*arguments: str, program: typer.Typer = app) -> Ended:
    """In this process, one at a time: a new process takes a second to import what is here already.

    Settings come from this process's environment and working directory. Verbs that become another
    program (`migrate up`, `worker`) would take the tests with them: they need `run_program`.
    """
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = await asyncio.to_thread(run, list(arguments), program)
    finally:
        # A verb sends logs to where standard error was while it ran.
        logs.configure("CRITICAL", "json")
    return Ended(code, out.getvalue(), err.getvalue())


async def run_program(*module: str, cwd: Path, env: dict[str, str]) -> Ended:
    """`python -m module ...` as a process of its own; `env` is added to this one's environment."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", *module),
        cwd=cwd,
        env={**os.environ, **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return Ended(process.returncode, out.decode(), err.decode())
