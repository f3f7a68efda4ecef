"""`python -m collector.simulated`: the simulated exchange as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from collector.durations import MINUTE_MS
from collector.simulated.faults.answers import Latency
from collector.simulated.faults.catalogue import KINDS, parse_faults
from collector.simulated.listing import WELL_KNOWN, listings
from collector.simulated.request_limit import Limit
from collector.simulated.server import SimulatedExchange
from collector.simulated.sockets import TICKS_PER_SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.simulated.faults.record import Fault

DEFAULT_PORT = 8900


def main(argv: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT and returns 0."""
    options = _parser().parse_args(argv)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_run(options))


async def _run(options: argparse.Namespace) -> int:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    exchange = SimulatedExchange(
        port=options.port,
        listed=listings(options.symbols, options.listed),
        seed=options.seed,
        limit=Limit(
            requests=options.limit,
            weight=options.weight_limit,
            period_ms=options.period_ms,
            enforce=options.enforce,
            ban_after=options.ban_after,
            ban_seconds=options.ban_seconds,
        ),
        faults=_faults(options),
        offset_ms=options.offset_ms,
        journal_path=options.journal,
        ticks_per_second=options.ticks_per_second,
        ready_pages=options.ready_pages,
    )
    try:
        async with exchange:
            print(f"simulated exchange at {exchange.url}", flush=True)
            await stop.wait()
    except OSError as error:
        print(f"simulated exchange: {error}", file=sys.stderr)
        return 1
    return 0


def _faults(options: argparse.Namespace) -> list[Fault]:
    late = Latency(ms=options.latency_ms, jitter_ms=options.jitter_ms)
    return [*([late] if late.ms or late.jitter_ms else []), *options.faults]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m collector.simulated",
        description="An exchange on this machine: Binance's public spot API with made-up bars.",
        epilog="Faults: " + ", ".join(sorted(KINDS)),
    )
    add = parser.add_argument
    add("--port", type=int, default=DEFAULT_PORT, help="0 takes a free one")
    add("--symbols", type=int, default=len(WELL_KNOWN), help="how many markets are listed")
    add("--listed", type=_minute, help="one listing date for all, such as 2024-01-01T00:00")
    add("--seed", type=int, default=7, help="other seeds, other bars")
    add("--latency-ms", type=float, default=0.0, help="every answer takes this long")
    add("--jitter-ms", type=float, default=0.0, help="and up to this much longer")
    add("--limit", type=int, help="requests in any window of --period-ms")
    add("--weight-limit", type=int, help="weight in any window of --period-ms")
    add("--period-ms", type=int, default=60_000)
    add("--enforce", action="store_true", help="answer 429 over the limit, not only note it")
    add("--ban-after", type=int, help="so many 429s end in 418")
    add("--ban-seconds", type=int, default=120)
    add("--offset-ms", type=int, default=0, help="how far its clock is ahead")
    add("--journal", type=Path, help="keep the journal of requests in this file too")
    add(
        "--ticks-per-second",
        type=float,
        default=TICKS_PER_SECOND,
        help="how often a websocket sends each price",
    )
    add("--ready-pages", type=int, default=0, help="so many pages of past bars are made once only")
    add("--faults", type=_fault_list, default=[], help="JSON, or @file with JSON")
    return parser


def _fault_list(text: str) -> list[Fault]:
    content = Path(text[1:]).read_bytes() if text.startswith("@") else text
    try:
        return parse_faults(orjson.loads(content))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _minute(text: str) -> int:
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 // MINUTE_MS * MINUTE_MS


def _loop_factory() -> type[asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.Loop


if __name__ == "__main__":
    sys.exit(main())
