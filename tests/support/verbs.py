"""Verbs of the command line, and what is left of one that has run."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TextIO

import pytest
import typer.main

from collector import logs
from collector.cli.main import app, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


# Typer makes the commands of a program again for every line, which takes as long as running one.
_commands_of = cache(typer.main.get_command)


async def run_here(*arguments: str, program: typer.Typer = app) -> Ended:
    """In this process, one at a time: a new process takes a second to import what is here already.

    Settings come from this process's environment and working directory. Verbs that become another
    program (`migrate up`, `worker`) would take the tests with them: they need `run_program`.
    """
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            _captured("stdout", out),
            _captured("stderr", err),
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr(typer.main, "get_command", _commands_of)
            code = await asyncio.to_thread(run, list(arguments), program)
    finally:
        # A verb sends logs to where standard error was while it ran.
        logs.configure("CRITICAL", "json")
    return Ended(code, out.getvalue(), err.getvalue())


class _ByContext(io.TextIOBase):
    """Writes of one context and of what it starts go to a stream of their own.

    A worker in this process logs while a verb runs: its lines are not the verb's output.
    """

    def __init__(self, own: TextIO, others: TextIO) -> None:
        self._stream = ContextVar("stream", default=others)
        self._stream.set(own)

    def write(self, text: str) -> int:
        return self._stream.get().write(text)

    def flush(self) -> None:
        self._stream.get().flush()


@contextlib.contextmanager
def _captured(name: str, own: TextIO) -> Iterator[None]:
    others = getattr(sys, name)
    setattr(sys, name, _ByContext(own, others))
    try:
        yield
    finally:
        setattr(sys, name, others)


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
