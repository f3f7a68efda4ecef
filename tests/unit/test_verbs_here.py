"""What a verb prints in this process is kept apart from what others print meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading

import typer

from collector import logs
from tests.support.verbs import run_here


async def test_only_the_verbs_own_lines_are_its_output() -> None:
    program, begun, printed = typer.Typer(), threading.Event(), threading.Event()

    @program.command()
    def verb() -> None:
        logs.configure("INFO", "json")
        begun.set()
        assert printed.wait(60)
        print("answer")
        logs.get("verb").warning("of the verb")

    async def others() -> None:
        await asyncio.to_thread(begun.wait, 60)
        print("of another task")
        print("of another task", file=sys.stderr)
        logs.get("other").warning("of another task")
        printed.set()

    beside = asyncio.create_task(others())
    ended = await run_here(program=program)
    await beside
    assert (ended.code, ended.out) == (0, "answer\n")
    assert ended.err.count("\n") == 1
    assert "of the verb" in ended.err
