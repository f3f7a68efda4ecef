"""From the words of `collector job add` to the specification of a job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.cli.actions.known import existing_connector, known_series, known_type
from collector.cli.failures import UsageMistake
from collector.cli.moments import moment_ms
from collector.connectors.registry import ConnectorRegistry
from collector.jobs import schedule as schedules
from collector.jobs.job import ONE_MARKET, WHOLE_EXCHANGE, Cursor, JobSpec
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collector.mongo.client import Database


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was typed."""

    exchange_id: str
    type: str
    symbol: str | None = None
    timeframe: str | None = None
    since: str | None = None
    until: str | None = None
    interval_ms: int | None = None
    cron: str | None = None
    priority: int | None = None


async def spec_of(database: Database, wanted: Wanted) -> tuple[JobSpec, list[str]]:
    """The job that is meant, and what to tell about it. Raises UsageMistake or NotFound."""
    known_type(wanted.type)
    check_shape(wanted)
    await existing_connector(ConnectorRegistry(database), wanted.exchange_id)
    notes: list[str] = []
    if wanted.symbol is not None:
        series = ([wanted.symbol], [wanted.timeframe] if wanted.timeframe else [])
        if not await known_series(database, wanted.exchange_id, *series):
            notes = [unknown_markets(wanted.exchange_id)]
    frame = Timeframe.parse(wanted.timeframe) if wanted.timeframe else None
    spec = JobSpec(
        wanted.exchange_id,
        wanted.type,
        wanted.symbol,
        frame.name if frame else None,
        schedule=schedule_of(wanted),
        priority=wanted.priority,
        cursor=cursor_of(wanted, frame, database.server_clock.now_ms()),
    )
    return spec, notes


def unknown_markets(exchange_id: str) -> str:
    return f"the markets of {exchange_id} are not known yet: symbols were taken as they are"


def check_shape(wanted: Wanted) -> None:
    """Raises UsageMistake when something is lacking, or means nothing for this type."""
    series = {"--symbol": wanted.symbol, "--timeframe": wanted.timeframe}
    needed = {} if wanted.type in WHOLE_EXCHANGE else series
    refused = {"--since": wanted.since, "--until": wanted.until}
    if wanted.type in WHOLE_EXCHANGE:
        refused |= series
    elif wanted.type in ONE_MARKET:
        needed = {"--symbol": wanted.symbol}
        refused = {"--timeframe": wanted.timeframe, "--until": wanted.until}
    elif wanted.type == "gap_backfill":
        needed, refused = {**series, **refused}, {}
    elif wanted.type in ("ohlcv_backfill", "ohlcv_from_trades"):
        refused = {}
    else:
        refused.pop("--since")
    lacking = [option for option, value in needed.items() if value is None]
    if lacking:
        raise UsageMistake(f"{wanted.type} needs {' and '.join(lacking)}")
    useless = [option for option, value in refused.items() if value is not None]
    if useless:
        raise UsageMistake(f"{wanted.type} has no {' or '.join(useless)}")


def cursor_of(wanted: Wanted, frame: Timeframe | None, now_ms: int) -> Cursor:
    """Where the work begins and ends. History begins at the first bar unless something is said."""
    since_ms = None if wanted.since is None else moment_ms(wanted.since, now_ms)
    until_ms = None if wanted.until is None else moment_ms(wanted.until, now_ms)
    if since_ms is not None and since_ms > now_ms:
        raise UsageMistake(f"--since {wanted.since} is in the future")
    if wanted.type in ONE_MARKET:
        return Cursor(since_ms=now_ms if since_ms is None else since_ms)
    if frame is None:
        return Cursor()
    if wanted.type == "ohlcv_incremental":
        return Cursor(since_ms=frame.floor(now_ms if since_ms is None else since_ms))
    until_ms = frame.floor(now_ms if until_ms is None else min(until_ms, now_ms))
    since_ms = since_ms or 0
    if until_ms <= since_ms:
        raise UsageMistake("--until is not after --since, or no bar has closed in between")
    return Cursor(since_ms=since_ms, until_ms=until_ms)


def schedule_of(wanted: Wanted) -> schedules.Schedule | None:
    """What was asked for; None leaves it to the type."""
    if wanted.interval_ms is not None and wanted.cron is not None:
        raise UsageMistake("--interval-ms and --cron exclude each other")
    if wanted.interval_ms is not None:
        return schedules.Interval(wanted.interval_ms)
    if wanted.cron is None:
        return None
    try:
        return schedules.Cron(wanted.cron)
    except ValueError as error:
        raise UsageMistake(str(error)) from None
