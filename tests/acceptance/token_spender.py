"""A process that spends tokens of exchange `x` as fast as it gets them, and writes down when.

It prints a line when it has its first token, and ends on SIGTERM. Its own clock is off by
`--skew-ms`; the times it writes are the machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import time
from pathlib import Path

import uvloop

from collector.clock import SystemClock
from collector.connectors.limiter import Limiter
from collector.errors import RateLimited
from collector.mongo.client import Database


class SkewedClock(SystemClock):
    def __init__(self, skew_ms: int) -> None:
        self._skew_ms = skew_ms

    def wall_ms(self) -> int:
        return super().wall_ms() + self._skew_ms


async def spend(arguments: argparse.Namespace) -> list[float]:
    times: list[float] = []
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    clock = SkewedClock(arguments.skew_ms)
    async with (
        Database(arguments.uri, arguments.database, clock=clock) as database,
        Limiter(database, clock=clock) as limiter,
    ):

        async def acquirer() -> None:
            while not over.is_set():
                try:
                    await limiter.acquire("x", patience=arguments.patience)
                    times.append(time.time())
                    if len(times) == 1:
                        print("at work", flush=True)
                except RateLimited as denied:
                    await asyncio.sleep((denied.retry_after_ms or 0) / 1000)

        await asyncio.gather(*(acquirer() for _ in range(arguments.acquirers)))
    return times


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uri", required=True)
    parser.add_argument("--database", required=True)
    parser.add_argument("--skew-ms", type=int, default=0)
    parser.add_argument("--acquirers", type=int, default=32)
    parser.add_argument("--patience", type=float, default=0.25)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.out.write_text(json.dumps(uvloop.run(spend(arguments))), "utf-8")


if __name__ == "__main__":
    main()
