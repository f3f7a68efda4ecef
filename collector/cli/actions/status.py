"""The output of `collector status` and `collector watch`."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from collector.cli.actions.connectors import NONE_YET, status_words, used_words
from collector.cli.board import board
from collector.cli.database import opened
from collector.cli.facts import connector_facts
from collector.cli.moments import shown_moment
from collector.cli.output import Output, show, table, to_json
from collector.cli.trouble_lines import as_facts, name_of, trouble_lines
from collector.errors import DatabaseUnavailable
from collector.jobs import types
from collector.jobs.queue import JobQueue
from collector.operations.census import Census, census
from collector.operations.trouble_facts import troubles_now
from collector.progress import BarRate, console

if TYPE_CHECKING:
    from rich.console import RenderableType

    from collector.cli.verb import Asked
    from collector.connectors.connector import Connector

BACKFILLS_SHOWN = 15
TROUBLE = 1
"""The exit code of `status` when something is wrong."""
_HEADINGS = ("exchange", "status", "used", "running", "waiting", "paused", "failed", "done", "lag")


async def status(asked: Asked) -> Output:
    async with opened(asked, "status") as database:
        found = await census(database)
        wrong = await troubles_now(database, count_now=True)
    facts = {**facts_of(found), "troubles": as_facts(wrong)}
    lines = trouble_lines(wrong, found.at_ms)
    shown = Group(*map(Text, lines), "", overview(found)) if lines else overview(found)
    return Output(facts, shown, exit_code=TROUBLE if wrong else 0)


async def watch(asked: Asked, every_seconds: float) -> None:
    """Runs until it is interrupted: redraws on a terminal, and otherwise prints line by line."""
    screen = console()
    pace = BarRate()
    async with opened(asked, "watch") as database:
        queue = JobQueue(database)
        drawing = screen.is_terminal and not asked.json
        with Live(console=screen, auto_refresh=False) as live:
            while True:
                try:
                    found, wrong = await census(database), await troubles_now(database)
                    working = {"type": types.OHLCV_BACKFILL.name, "status": "active"}
                    backfills = await queue.find(working, limit=BACKFILLS_SHOWN)
                except DatabaseUnavailable as error:
                    live.update(str(error), refresh=True)
                    await asyncio.sleep(every_seconds)
                    continue
                speed = pace.note(time.monotonic(), found.history.bars)
                if drawing:
                    details = board(backfills, (), speed, found.at_ms) if backfills else ""
                    lines = map(Text, trouble_lines(wrong, found.at_ms))
                    live.update(Group(*lines, overview(found), "", details), refresh=True)
                elif asked.json:
                    facts = {**facts_of(found), "troubles": as_facts(wrong)}
                    print(to_json(facts), flush=True)
                else:
                    names = "   ".join(f"! {name_of(each)}" for each in wrong)
                    show(f"{one_line(found, speed)}   {names}".rstrip())
                await asyncio.sleep(every_seconds)


def overview(found: Census) -> RenderableType:
    """Exchanges, then jobs, history and workers in a sentence each."""
    if not found.connectors:
        return Group(NONE_YET, worker_words(found))
    rows = [_row(found, connector) for connector in found.connectors]
    exchanges = table(_HEADINGS, rows, right="running waiting paused failed done")
    lines = [job_words(found), history_words(found), worker_words(found)]
    return Group(exchanges, "", *filter(None, lines), f"at {shown_moment(found.at_ms)} UTC")


def _row(found: Census, connector: Connector) -> tuple[object, ...]:
    counts: Counter[str] = found.states.get(connector.exchange_id, Counter())
    lag = found.lags.get(connector.exchange_id)
    return (
        connector.exchange_id,
        status_words(connector, found.at_ms),
        used_words(connector, found.at_ms),
        counts["running"],
        sum(counts[name] for name in ("idle", "queued", "waiting_rate_limit")),
        counts["paused"],
        counts["failed"],
        counts["success"],
        f"{lag.bars:,} bars of {lag.timeframe}" if lag else None,
    )


def one_line(found: Census, speed: float) -> str:
    """The same for a log."""
    stopped = [
        f"{connector.exchange_id} {status_words(connector, found.at_ms)}"
        for connector in found.connectors
        if connector.stopped(found.at_ms) is not None
    ]
    lines = [job_words(found), history_words(found), f"{speed:,.0f} bars/s", worker_words(found)]
    return f"{shown_moment(found.at_ms)}   " + "   ".join([*filter(None, lines), *stopped])


def job_words(found: Census) -> str:
    total = found.total
    if not total:
        return "no jobs yet: collector add binance BTC/USDT"
    parts = ", ".join(f"{count:,} {name}" for name, count in sorted(total.items()))
    return f"jobs: {total.total():,} ({parts})"


def history_words(found: Census) -> str:
    history = found.history
    if not history.jobs:
        return ""
    share = f", {history.share:.1%} of {history.bars_in_all:,} bars" if history.bars_in_all else ""
    return f"backfills: {history.done:,} of {history.jobs:,} done{share}"


def worker_words(found: Census) -> str:
    if not found.workers:
        return "workers: none alive; start one with `collector up` or `collector worker`"
    names = ", ".join(f"{each.get('host')}:{each.get('pid')}" for each in found.workers[:5])
    more = ", ..." if len(found.workers) > 5 else ""
    return f"workers: {len(found.workers)} alive ({names}{more})"


def facts_of(found: Census) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "at": found.at_ms,
        "connectors": [
            {
                **connector_facts(connector, found.at_ms),
                "jobs": dict(found.states.get(connector.exchange_id, {})),
                "lag": _lag_facts(found, connector.exchange_id),
            }
            for connector in found.connectors
        ],
        "jobs": dict(found.total),
        "backfills": asdict(found.history),
        "workers": [
            {"id" if name == "_id" else name: value for name, value in each.items()}
            for each in found.workers
        ],
    }


def _lag_facts(found: Census, exchange_id: str) -> dict[str, Any] | None:
    lag = found.lags.get(exchange_id)
    return asdict(lag) if lag else None
