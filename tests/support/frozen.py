"""A mongod that neither answers nor hangs up."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from collector.mongo.client import Database


@asynccontextmanager
async def frozen(database: Database) -> AsyncIterator[None]:
    """Its mongod is stopped for as long as the block lasts."""
    pid = (await database.raw.command("serverStatus"))["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
