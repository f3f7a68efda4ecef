"""`python -m api`: the REST API, until a signal stops it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import uvloop

from api.main import ListenAddress, serve
from collector import logs
from collector.cli.failures import report
from collector.errors import CollectorError
from collector.mongo.location import mongodb
from collector.operations.processes import forbid_core_dumps
from collector.settings import Settings, load


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError("must be between 0 and 65535")
    return number


async def run(settings: Settings, listening: ListenAddress) -> None:
    async with mongodb(settings.mongo_address, settings.home, "api") as uri:
        await serve(settings, uri, listening)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m api", description=__doc__)
    parser.add_argument("--config", type=Path, help="settings file (default: collector.yaml)")
    parser.add_argument("--host", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, help="0 takes a free one (default: 8000)")
    arguments = parser.parse_args()
    try:
        settings = load(arguments.config)
        if not settings.core_dumps:
            forbid_core_dumps()
        logs.configure(settings.logging.level, settings.logging.format)
        listening = ListenAddress.of(settings, arguments.host, arguments.port)
        uvloop.run(run(settings, listening))
    except CollectorError as error:
        return report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
