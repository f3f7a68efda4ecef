"""A genuine mongod whose date a test can step while it runs."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.mongod_binary import find_mongod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCE = Path(__file__).with_name("clock_shim.c")
LATE_ENOUGH = 7_200


@dataclass(frozen=True)
class SteppedMongo:
    """The clock of this mongod is the machine's, and so many seconds more as it was last told."""

    uri: str
    _file: Path

    def step_to(self, seconds_ahead: int) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", seconds_ahead))


def why_not() -> str | None:
    """What is missing on this machine to step a clock; None when nothing is."""
    if sys.platform != "linux":
        return "a program's clock is stepped by a preloaded library, which takes Linux"
    return None if shutil.which("cc") else "stepping mongod's clock takes a C compiler (cc)"


@asynccontextmanager
async def stepped_mongo(folder: Path) -> AsyncIterator[SteppedMongo]:
    """Its clock is right at first."""
    file = folder / "seconds"
    file.write_bytes(struct.pack("=q", 0))
    environ = {"COLLECTOR_MONGOD": str(_with_the_shim(folder, file))}
    async with await EmbeddedMongo.start(folder / "home", purpose="test", environ=environ) as mongo:
        stepped = SteppedMongo(mongo.uri, file)
        try:
            yield stepped
        finally:
            # Stepped back, mongod would wait for its own timers before it lets itself be ended.
            stepped.step_to(LATE_ENOUGH)


def _with_the_shim(folder: Path, file: Path) -> Path:
    """A mongod whose clock is read from `file`."""
    library, mongod = folder / "clock_shim.so", folder / "mongod"
    build = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*build, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    genuine = find_mongod(os.environ)
    mongod.write_text(
        f"#!/bin/sh\nCLOCK_SHIM_FILE='{file}' LD_PRELOAD='{library}' exec '{genuine}' \"$@\"\n"
    )
    mongod.chmod(0o700)
    return mongod
