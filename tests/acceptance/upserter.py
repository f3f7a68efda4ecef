"""A process that makes the same connector and the same job two hundred times at once."""

from __future__ import annotations

import argparse
import asyncio

import uvloop

from collector.connectors.connector import Limits
from collector.connectors.registry import ConnectorRegistry
from collector.jobs.job import JobSpec
from collector.jobs.queue import JobQueue
from collector.mongo.client import Database


async def upsert(uri: str, name: str) -> None:
    async with Database(uri, name) as database:
        registry, queue = ConnectorRegistry(database), JobQueue(database)
        connectors = await asyncio.gather(
            *(registry.ensure("x", Limits(10, 1000)) for _ in range(200))
        )
        spec = JobSpec("x", "ohlcv_incremental", "BTC/USDT", "1m")
        jobs = await asyncio.gather(*(queue.add(spec) for _ in range(200)))
    print(sum(made for _, made in connectors))
    print(sum(made for _, made in jobs))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--uri", required=True)
    parser.add_argument("--database", required=True)
    arguments = parser.parse_args()
    uvloop.run(upsert(arguments.uri, arguments.database))
