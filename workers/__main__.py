"""`python -m workers`: one worker process, until a signal drains it."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

import uvloop

import workers.small_memory
import workers.without_pandas  # noqa: F401
from collector import logs
from collector.errors import CollectorError
from collector.mongo.location import mongodb
from collector.settings import Settings, load
from workers.main import Options, work


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def calm_the_collector() -> None:
    """Lets Python look for cyclic garbage seldom, and never among what the imports made.

    A page is thousands of short-lived numbers; looking through everything alive after every few
    hundred of them took a quarter of a backfill's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


async def run(settings: Settings, options: Options) -> None:
    async with mongodb(settings.mongo_uri, settings.home, "worker") as uri:
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
        logs.configure(settings.logging.level, settings.logging.format)
        options = Options(arguments.concurrency, arguments.exchange, arguments.until_idle)
        calm_the_collector()
        uvloop.run(run(settings, options))
    except CollectorError as error:
        print(f"{error.exit_name}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
