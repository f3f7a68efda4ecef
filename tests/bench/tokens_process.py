"""One of several processes that want tokens at once: `python -m tests.bench.tokens_process`.

Reads a line for every round, `way seconds`, and answers it with the tokens a second it got.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import uvloop

from collector import logs
from collector.mongo.client import Database
from tests.bench.tokens_limits import LIMITS
from tests.bench.tokens_ours import OURS, spend

if TYPE_CHECKING:
    from tests.bench.tokens_limits import Spend

WAITERS = 32


async def serve(uri: str, name: str) -> None:
    async with Database(uri, name) as database, AsyncExitStack() as stack:
        spenders = await open_spenders(database, uri, stack)
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            way, seconds = line.strip().rsplit(" ", 1)
            print(await spenders[way](WAITERS, float(seconds)), flush=True)


async def open_spenders(database: Database, uri: str, stack: AsyncExitStack) -> dict[str, Spend]:
    """Every way by name, ready to be raced. The connectors must be there already."""
    spenders: dict[str, Spend] = {}
    for way, opener in OURS.items():
        acquire = await stack.enter_async_context(opener(database, way))
        spenders[way] = lambda waiters, seconds, a=acquire: spend(a, waiters, seconds)
    for way, spend_opener in LIMITS.items():
        spenders[way] = await stack.enter_async_context(spend_opener(database, uri))
    return spenders


if __name__ == "__main__":
    logs.configure("CRITICAL", "json")
    uvloop.run(serve(sys.argv[1], sys.argv[2]))
