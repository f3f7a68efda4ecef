"""`python -m tests.bench [names]`: benchmarks on an embedded mongod, judged by their ratios.

Ends with one line a figure: what was measured, what is required, how it moved against
baseline.json. The exit code is 1 when a required ratio was missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from rich.console import Console

from collector import logs
from collector.mongo.embedded import EmbeddedMongo
from tests.bench import (
    backfill,
    bad_answers,
    baseline,
    dashboard,
    exports,
    fxcm,
    help,
    history,
    history_apply,
    jobs,
    lake,
    leases,
    publication,
    questions,
    run_to_request,
    series,
    status,
    streams,
    tokens,
    venues,
    waiting,
    wakeup,
    ways,
)
from tests.bench.harness import Bench, Figure, number

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

BENCHMARKS: dict[str, Callable[[Bench], Awaitable[list[Figure]]]] = {
    "tokens": tokens.run,
    "leases": leases.run,
    "jobs": jobs.run,
    "status": status.run,
    "wakeup": wakeup.run,
    "run": run_to_request.run,
    "waiting": waiting.run,
    "backfill": backfill.run,
    "ways": ways.run,
    "bad_answers": bad_answers.run,
    "questions": questions.run,
    "venues": venues.run,
    "series": series.run,
    "help": help.run,
    "exports": exports.run,
    "lake": lake.run,
    "history": history.run,
    "history_apply": history_apply.run,
    "fxcm": fxcm.run,
    "streams": streams.run,
    "publication": publication.run,
    "dashboard": dashboard.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which: {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="a short form of each")
    parser.add_argument(
        "--million", action="store_true", help="a million jobs in the short form, too"
    )
    parser.add_argument(
        "--ten-thousand", action="store_true", help="series: 10,000 of them, not 1,000"
    )
    parser.add_argument("--save", action="store_true", help="rewrite baseline.json")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    logs.configure("CRITICAL", "json")
    # A width of its own: in a pipe rich would fold the tables at 80 columns.
    console = Console(width=100, highlight=False)
    figures = uvloop.run(measure(arguments, console))
    form = "quick" if arguments.quick else "full"
    report(console, figures, baseline.load(form))
    if arguments.save:
        baseline.save(form, figures)
    return 0 if all(figure.ok for figure in figures) else 1


async def measure(arguments: argparse.Namespace, console: Console) -> list[Figure]:
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="collector-bench-") as home:
        async with await EmbeddedMongo.start(Path(home), purpose="benchmarks") as mongo:
            bench = Bench(
                mongo.uri,
                console,
                arguments.quick,
                arguments.million or not arguments.quick,
                arguments.ten_thousand,
            )
            for name in arguments.names or BENCHMARKS:
                started = time.monotonic()
                console.rule(f"[bold]{name}", align="left")
                figures += await BENCHMARKS[name](bench)
                console.print(f"{name}: {time.monotonic() - started:.0f} s\n")
    return figures


def report(console: Console, figures: Sequence[Figure], known: dict[str, float]) -> None:
    console.rule("[bold]summary", align="left")
    for figure in figures:
        measured = f"{number(figure.value)}{figure.unit}"
        against = baseline.change(figure, known)
        colour = "red" if figure.verdict == "SHORT" else "green"
        console.print(
            f"{figure.name:<58} {measured:>10}  {figure.required:<12} "
            f"[{colour}]{figure.verdict:<5}[/] {against}"
        )


if __name__ == "__main__":
    sys.exit(main())
