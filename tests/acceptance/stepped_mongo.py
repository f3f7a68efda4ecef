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

import pytest

from collector.mongo.embedded import EmbeddedMongo
from collector.mongo.mongod_binary import find_mongod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCE = Path(__file__).with_name("clock_shim.c")
LATE_ENOUGH = 7_200


class SteppedClock:
    """A clock that is the machine's, and so many seconds more as it was last told."""

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(struct.pack("=q", 0))

    def step_to(self, seconds_ahead: float) -> None:
        with self._file.open("r+b") as file:
            file.write(struct.pack("=q", round(seconds_ahead * 1000)))

    def mongod(self, library: Path) -> Path:
        """A program that is mongod under this clock."""
        mongod = self._file.with_suffix(".mongod")
        environ = f"CLOCK_SHIM_FILE='{self._file}' LD_PRELOAD='{library}'"
        mongod.write_text(f"#!/bin/sh\n{environ} exec '{find_mongod(os.environ)}' \"$@\"\n")
        mongod.chmod(0o700)
        return mongod


@dataclass(frozen=True)
class SteppedMongo:
    """A replica set of one member under a clock that can be stepped."""

    uri: str
    clock: SteppedClock


def require_stepped_clocks() -> None:
    """Skips the test on a machine that cannot step a program's clock, but never in CI."""
    reason = None
    if sys.platform != "linux":
        reason = "a program's clock is stepped by a preloaded library, which takes Linux"
    elif not shutil.which("cc"):
        reason = "stepping mongod's clock takes a C compiler (cc)"
    if reason is not None:
        assert not os.environ.get("CI"), reason
        pytest.skip(reason)


@asynccontextmanager
async def stepped_mongo(folder: Path) -> AsyncIterator[SteppedMongo]:
    """Its clock is right at first."""
    clock = SteppedClock(folder / "ahead")
    environ = {"COLLECTOR_MONGOD": str(clock.mongod(clock_shim(folder)))}
    async with await EmbeddedMongo.start(folder / "home", purpose="test", environ=environ) as mongo:
        try:
            yield SteppedMongo(mongo.uri, clock)
        finally:
            # Stepped back, mongod would wait for its own timers before it lets itself be ended.
            clock.step_to(LATE_ENOUGH)


def clock_shim(folder: Path) -> Path:
    """The library through which a program reads a SteppedClock."""
    library = folder / "clock_shim.so"
    build = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*build, "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library
