"""What `collector add` does: creates everything that keeps some series complete."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import typer
from rich.console import Group

from collector.cli.actions.known import no_worker_note
from collector.cli.actions.new_job import unknown_markets
from collector.cli.connector_words import budget_words
from collector.cli.database import fleet_of
from collector.cli.failures import UsageMistake, say
from collector.cli.job_words import state_words
from collector.cli.output import Output, table
from collector.durations import shown_span
from collector.operations.connectors import check_exchange
from collector.operations.market_names import check_timeframe
from collector.operations.meant_symbol import is_pattern
from collector.operations.moments import moment_ms
from collector.operations.streams import SeriesRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from collector.cli.verb import Asked
    from collector.fleet.interface import Fleet, Shown

MOST_ROWS = 40
"""Jobs that are listed; the count says how many there are."""
SYMBOLS_NAMED = 6
DECLINED = 1
"""The exit code when a person said no."""


async def add(
    asked: Asked,
    exchange_id: str,
    symbols: Sequence[str],
    timeframes: str,
    since: str | None,
    backfill: bool,
    yes: bool,
) -> Output:
    """Connector, duties and jobs of every symbol in every timeframe. Idempotent."""
    check_exchange(exchange_id)
    frames = split_timeframes(timeframes)
    async with fleet_of(asked, "add") as fleet:
        now_ms = await fleet.overview.now_ms()
        since_ms = None if since is None else moment_ms(since, now_ms)
        wanted = SeriesRequest(exchange_id, symbols, frames, since_ms, backfill)
        if any(map(is_pattern, symbols)):
            await _confirmed(fleet, wanted, yes=yes)
        found = await fleet.markets.add(wanted)
        notes = list(found["notes"])
        notes += [] if found["symbols_known"] else [unknown_markets(exchange_id)]
        notes += await no_worker_note(fleet)
    facts = {
        "exchange_id": exchange_id,
        "connector_created": found["connector_created"],
        "created": found["created"],
        "existing": found["existing"],
        "notes": found["notes"],
    }
    return Output(facts, Group(_summary(found), "", _table(found)), notes)


def split_timeframes(text: str) -> list[str]:
    """`1m,1h` as a list without repeats. Raises UsageMistake."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageMistake("--timeframes names none: write 1m or 1m,1h")
    return list(dict.fromkeys(check_timeframe(name, field="timeframes") for name in names))


async def _confirmed(fleet: Fleet, wanted: SeriesRequest, *, yes: bool) -> None:
    """A pattern may name thousands of markets: shows what it costs, and asks."""
    cost = await fleet.markets.estimate(wanted)
    for line in cost_lines(wanted.exchange_id, cost):
        say(line)
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageMistake("a pattern is added only with --yes where nobody can be asked")
    if not typer.confirm("Add them?", err=True):
        say("nothing was added")
        raise typer.Exit(DECLINED)


def cost_lines(exchange_id: str, cost: Shown) -> list[str]:
    """How many, what they cost once, and what they cost from then on."""
    symbols = cost["symbols"]
    named = ", ".join(symbols[:SYMBOLS_NAMED]) + (", ..." if len(symbols) > SYMBOLS_NAMED else "")
    ahead = round(cost["seconds_ahead"])
    lines = [
        f"{exchange_id}: {_counted(len(symbols), 'market')} ({named}), {cost['series']:,} series, "
        f"{cost['existing']:,} of them are there already",
        f"history: {cost['bars']:,} bars at most, {_counted(cost['requests'], 'request')}, "
        f"{shown_span(math.ceil(cost['seconds']) * 1000)} or more at this budget",
        f"afterwards: {_counted(cost['requests_per_day'], 'request')} a day, "
        f"{cost['share_per_day']:.1%} of the budget",
    ]
    if cost["unknown"]:
        words = "series whose first bar is not known: their history is not in these figures"
        lines.append(f"{cost['unknown']:,} {words}")
    if ahead:
        lines.append(f"backfills that are under way need {shown_span(ahead * 1000)} before that")
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _summary(found: Shown) -> str:
    connector, new = found["connector"], len(found["created"])
    first = "connector made" if found["connector_created"] else "connector was there"
    counts = f"{new} jobs made, {len(found['existing'])} were there"
    return f"{connector['exchange_id']}: {first} ({budget_words(connector)}), {counts}"


def _table(found: Shown) -> Group | Table:
    jobs = [(job, "made") for job in found["created"]]
    jobs += [(job, "was there") for job in found["existing"]]
    rows = [
        (job["id"], job["symbol"], job["timeframe"], job["type"], state_words(job), word)
        for job, word in jobs[:MOST_ROWS]
    ]
    shown = table(("id", "symbol", "tf", "type", "state", ""), rows)
    left = len(jobs) - MOST_ROWS
    return shown if left <= 0 else Group(shown, f"and {left:,} more: collector job list")
