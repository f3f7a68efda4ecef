"""The output of `collector status`, `troubles` and `watch`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from collector.cli.actions.connectors import NONE_YET
from collector.cli.board import board
from collector.cli.connector_words import connector_facts, status_words, used_words
from collector.cli.database import fleet_of
from collector.cli.moments import shown_moment
from collector.cli.output import Output, show, table, to_json
from collector.cli.trouble_lines import name_of, trouble_lines
from collector.errors import RetryLater
from collector.jobs import types
from collector.progress import BarRate, console

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from collector.cli.verb import Asked

    Shown = Mapping[str, Any]

BACKFILLS_SHOWN = 15
TROUBLE = 1
"""The exit code of `status` and `troubles` when something is wrong."""
_HEADINGS = ("exchange", "status", "used", "running", "waiting", "paused", "failed", "done", "lag")


async def status(asked: Asked) -> Output:
    async with fleet_of(asked, "status") as fleet:
        found = await fleet.overview.status()
    wrong = found["troubles"]
    lines = trouble_lines(wrong, found["at"])
    shown = Group(*map(Text, lines), "", overview(found)) if lines else overview(found)
    return Output(facts_of(found), shown, exit_code=TROUBLE if wrong else 0)


async def troubles(asked: Asked) -> Output:
    async with fleet_of(asked, "troubles") as fleet:
        wrong = await fleet.overview.troubles()
        now_ms = await fleet.overview.now_ms()
    lines = trouble_lines(wrong, now_ms)
    shown = Group(*map(Text, lines)) if lines else "all is well"
    return Output({"items": wrong, "next_cursor": None}, shown, exit_code=TROUBLE if wrong else 0)


async def watch(asked: Asked, every_seconds: float) -> None:
    """Runs until it is interrupted: redraws on a terminal, and otherwise prints line by line."""
    screen = console()
    pace = BarRate()
    async with fleet_of(asked, "watch") as fleet:
        drawing = screen.is_terminal and not asked.json
        with Live(console=screen, auto_refresh=False) as live:
            while True:
                try:
                    found = await fleet.overview.status(count_now=False)
                    working = {"type": types.OHLCV_BACKFILL.name, "status": "active"}
                    backfills = (await fleet.jobs.page(working, BACKFILLS_SHOWN))["items"]
                except RetryLater as error:
                    live.update(str(error), refresh=True)
                    await asyncio.sleep(every_seconds)
                    continue
                speed = pace.note(time.monotonic(), found["backfills"]["bars"])
                if drawing:
                    details = board(backfills, (), speed, found["at"]) if backfills else ""
                    lines = map(Text, trouble_lines(found["troubles"], found["at"]))
                    live.update(Group(*lines, overview(found), "", details), refresh=True)
                elif asked.json:
                    print(to_json(facts_of(found)), flush=True)
                else:
                    names = "   ".join(f"! {name_of(each)}" for each in found["troubles"])
                    show(f"{one_line(found, speed)}   {names}".rstrip())
                await asyncio.sleep(every_seconds)


def overview(found: Shown) -> RenderableType:
    """Exchanges, then jobs, history and workers in a sentence each."""
    if not found["connectors"]:
        return Group(NONE_YET, worker_words(found))
    rows = [_row(connector, found["at"]) for connector in found["connectors"]]
    exchanges = table(_HEADINGS, rows, right="running waiting paused failed done")
    lines = [job_words(found), history_words(found), worker_words(found)]
    return Group(exchanges, "", *filter(None, lines), moment_words(found))


def _row(connector: Shown, now_ms: int) -> tuple[object, ...]:
    counts, lag = connector["jobs"], connector["lag"]
    return (
        connector["exchange_id"],
        status_words(connector, now_ms),
        used_words(connector),
        counts.get("running", 0),
        sum(counts.get(name, 0) for name in ("idle", "queued", "waiting_rate_limit")),
        counts.get("paused", 0),
        counts.get("failed", 0),
        counts.get("success", 0),
        lag_words(lag) if lag else None,
    )


def moment_words(found: Shown) -> str:
    """When all this was so. Jobs may have been counted some seconds earlier."""
    age = (found["at"] - found["counted_at"]) // 1000
    counted = f"; jobs were counted {age} s before" if age else ""
    return f"at {shown_moment(found['at'])} UTC{counted}"


def lag_words(lag: Shown) -> str:
    """How far the series furthest behind is, and how many are unconfirmed instead."""
    words = f"{lag['bars']:,} bars of {lag['timeframe']}"
    return f"{words}, {lag['unconfirmed']:,} unconfirmed" if lag["unconfirmed"] else words


def one_line(found: Shown, speed: float) -> str:
    """The same for a log."""
    stopped = [
        f"{connector['exchange_id']} {status_words(connector, found['at'])}"
        for connector in found["connectors"]
        if connector["stop"] is not None
    ]
    lines = [job_words(found), history_words(found), f"{speed:,.0f} bars/s", worker_words(found)]
    return f"{shown_moment(found['at'])}   " + "   ".join([*filter(None, lines), *stopped])


def job_words(found: Shown) -> str:
    total = found["jobs"]
    if not total:
        return "no jobs yet: collector add binance BTC/USDT"
    parts = ", ".join(f"{count:,} {name}" for name, count in sorted(total.items()))
    return f"jobs: {sum(total.values()):,} ({parts})"


def history_words(found: Shown) -> str:
    history = found["backfills"]
    if not history["jobs"]:
        return ""
    bars, in_all = history["bars"], history["bars_in_all"]
    share = f", {bars / in_all:.1%} of {in_all:,} bars" if in_all else ""
    return f"backfills: {history['done']:,} of {history['jobs']:,} done{share}"


def worker_words(found: Shown) -> str:
    workers = found["workers"]
    if not workers:
        return "workers: none alive; start one with `collector up` or `collector worker`"
    names = ", ".join(f"{each['host']}:{each['pid']}" for each in workers[:5])
    more = ", ..." if len(workers) > 5 else ""
    return f"workers: {len(workers)} alive ({names}{more})"


def facts_of(found: Shown) -> dict[str, Any]:
    """The same for scripts."""
    connectors = [
        {**connector_facts(each), "jobs": each["jobs"], "lag": each["lag"]}
        for each in found["connectors"]
    ]
    return {**found, "connectors": connectors}
