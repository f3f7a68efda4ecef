"""`collector job`: the work, and what may be done with it."""

from typing import Annotated

import typer

from collector.cli.arguments import Exchange, JobId, JobIds, exchange_ids, job_types, timeframes
from collector.cli.verb import Asked, give, verb
from collector.jobs.states import State, Status

app = typer.Typer(help="Jobs: what is collected, and how far it is.", no_args_is_help=True)

_Timeframe = Annotated[
    str | None, typer.Option(help="Timeframe, such as 1m.", autocompletion=timeframes)
]


@verb(app, "add")
def add(
    asked: Asked,
    exchange: Exchange,
    job_type: Annotated[
        str,
        typer.Argument(
            metavar="TYPE",
            help="ohlcv_backfill, ohlcv_incremental, gap_backfill, or for the whole exchange "
            "markets_refresh, compact, tail_refresh, gap_scan, full_scan, verify_source.",
            autocompletion=job_types,
        ),
    ],
    symbol: Annotated[str | None, typer.Option(help="Symbol, such as BTC/USDT.")] = None,
    timeframe: _Timeframe = None,
    since: Annotated[str | None, typer.Option(help="Begin here: a date, or 30d ago.")] = None,
    until: Annotated[str | None, typer.Option(help="End here (default: now).")] = None,
    interval_ms: Annotated[int | None, typer.Option(min=1000, help="Run this often.")] = None,
    cron: Annotated[str | None, typer.Option(help="Run at these times, UTC: '0 * * * *'.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=1000, help="Lower goes first.")] = None,
) -> None:
    """Add one job. Adding the same again changes nothing and says so.

    `collector add` is the short way to what a series needs.

    Example: `collector job add binance ohlcv_backfill --symbol BTC/USDT --timeframe 1m --since 90d`
    """
    from collector.cli.actions import jobs
    from collector.cli.actions.new_job import Wanted

    given = (exchange, job_type, symbol, timeframe, since, until, interval_ms, cron, priority)
    give(asked, jobs.add(asked, Wanted(*given)))


@verb(app, "list")
def listed(
    asked: Asked,
    exchange: Annotated[
        str | None, typer.Option(help="Only this exchange.", autocompletion=exchange_ids)
    ] = None,
    job_type: Annotated[
        str | None, typer.Option("--type", help="Only this type.", autocompletion=job_types)
    ] = None,
    symbol: Annotated[str | None, typer.Option(help="Only this symbol.")] = None,
    timeframe: _Timeframe = None,
    status: Annotated[Status | None, typer.Option(help="Only with this status.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier list.")] = None,
) -> None:
    """List jobs, the oldest first. Removed ones only with `--status deleted`.

    Example: `collector job list --exchange binance --state failed`
    """
    from collector.cli.actions import jobs

    filters = {
        "exchange_id": exchange,
        "type": job_type,
        "symbol": symbol,
        "timeframe": timeframe,
        "status": status.value if status else None,
        "state": state.value if state else None,
    }
    give(asked, jobs.listed(asked, filters, limit, cursor))


@verb(app, "show")
def show(asked: Asked, job_id: JobId) -> None:
    """Show one job and its latest runs.

    Example: `collector job show 6743f0c2a1b2c3d4e5f60718`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.shown(asked, job_id))


@verb(app, "pause")
def pause(asked: Asked, job_ids: JobIds) -> None:
    """Stop jobs; a running one stops after the page in hand and keeps its place.

    Example: `collector job pause 6743f0c2a1b2c3d4e5f60718`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.paused(asked, job_ids))


@verb(app, "resume")
def resume(asked: Asked, job_ids: JobIds) -> None:
    """Let paused jobs run again, now.

    Example: `collector job resume 6743f0c2a1b2c3d4e5f60718`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.resumed(asked, job_ids))


@verb(app, "run")
def run(asked: Asked, job_ids: JobIds) -> None:
    """Run jobs now, whatever their schedule; also finished and failed ones.

    Example: `collector job run 6743f0c2a1b2c3d4e5f60718`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.run(asked, job_ids))


@verb(app, "remove")
def remove(asked: Asked, job_ids: JobIds) -> None:
    """Remove jobs. What they collected stays.

    Example: `collector job remove 6743f0c2a1b2c3d4e5f60718`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.removed(asked, job_ids))
