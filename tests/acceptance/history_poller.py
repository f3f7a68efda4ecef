"""A process that polls every series of `fxcm` as fast as its connector lets it, as a worker does.

It writes down when each call was made, by series. A refused poll is tried again a little later.
It prints a line when it has made its first call, and ends on SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import time
from pathlib import Path

import uvloop

from collector.connectors.limiter import Limiter
from collector.connectors.permit import ConnectorPermit
from collector.connectors.registry import ConnectorRegistry
from collector.errors import RateLimited
from collector.exchanges.port import Answer, Call
from collector.exchanges.registry import quirks_for
from collector.mongo.client import Database


async def polled(arguments: argparse.Namespace) -> list[tuple[float, str]]:
    calls: list[tuple[float, str]] = []
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with (
        Database(arguments.uri, arguments.database) as database,
        Limiter(database) as limiter,
    ):
        await database.read_server_clock()
        registry = ConnectorRegistry(database)
        permit = ConnectorPermit(limiter, registry, quirks_for("fxcm"), patience=0)

        async def poller(key: str) -> None:
            while not over.is_set():
                call = Call("fxcm", "history", key=key)
                try:
                    await permit.before(call)
                except RateLimited as denied:
                    wait = (denied.retry_after_ms or 0) / 1000
                    await asyncio.sleep(min(wait, arguments.every))
                    continue
                calls.append((time.time(), key))
                if len(calls) == 1:
                    print("at work", flush=True)
                now = limiter.clock.monotonic()
                await permit.after(Answer(call, "ok", 0.0, health="good", arrived_at=now))
                await asyncio.sleep(arguments.every)

        await asyncio.gather(*(poller(key) for key in arguments.keys.split(",")))
    return calls


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uri", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--keys", required=True)
    parser.add_argument("--every", type=float, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(uvloop.run(polled(arguments))), "utf-8")


if __name__ == "__main__":
    main()
