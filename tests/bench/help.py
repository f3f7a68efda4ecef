"""How long `collector --help` takes, as a process: the first thing anybody sees of the program."""

from __future__ import annotations

import asyncio
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tests.bench.harness import Bench, Figure, in_turn, ratio

if TYPE_CHECKING:
    from collections.abc import Sequence

AT_MOST_S = 0.5
HELP, EMPTY = "collector --help", "an empty interpreter"
COMMANDS = {
    HELP: (str(Path(sys.executable).with_name("collector")), "--help"),
    EMPTY: (sys.executable, "-c", ""),
}


async def run(bench: Bench) -> list[Figure]:
    samples = await in_turn(
        {name: partial(_seconds, command) for name, command in COMMANDS.items()},
        rounds=bench.pick(15, 5),
        settled=lambda samples: median(samples[HELP]) <= AT_MOST_S,
    )
    bench.show(
        "from the start of the process to its end, s",
        ["", "median", "worst"],
        [[name, median(values), max(values)] for name, values in samples.items()],
    )
    return [
        Figure(f"help.{HELP}", median(samples[HELP]), " s", at_most=AT_MOST_S),
        Figure(f"help.{HELP} / {EMPTY}", ratio(samples, HELP, EMPTY)),
    ]


async def _seconds(command: Sequence[str]) -> float:
    started = time.monotonic()
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    seconds = time.monotonic() - started
    if process.returncode or ("--help" in command and b"Usage" not in said):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return seconds
