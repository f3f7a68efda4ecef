"""`python -m workers`: one worker process, until a signal drains it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvloop

import workers.seldom_garbage
import workers.small_memory
import workers.without_unused  # noqa: F401
from collector import logs
from collector.cli.failures import report
from collector.errors import CollectorError
from collector.mongo.location import mongodb
from collector.operations.processes import forbid_core_dumps
from collector.settings import Settings, load
from workers.main import Options, work
from workers.seldom_garbage import look_seldom


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


async def run(settings: Settings, options: Options) -> None:
    async with mongodb(settings.mongo_address, settings.home, "worker") as uri:
        await work(settings, uri, options)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers", description=__doc__)
    parser.add_argument("--config", type=Path, help="settings file (default: collector.yaml)")
    parser.add_argument("--concurrency", type=_positive, help="jobs at a time")
    parser.add_argument(
        "--exchange", action="append", default=[], help="work only for this exchange; repeatable"
    )
    parser.add_argument(
        "--until-idle", action="store_true", help="exit once nothing is left to do now"
    )
    arguments = parser.parse_args()
    try:
        settings = load(arguments.config)
        if not settings.core_dumps:
            forbid_core_dumps()
        logs.configure(settings.logging.level, settings.logging.format)
        options = Options(arguments.concurrency, arguments.exchange, arguments.until_idle)
        look_seldom()
        uvloop.run(run(settings, options))
    except CollectorError as error:
        return report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
