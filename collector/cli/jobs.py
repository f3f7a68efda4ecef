"""`collector job`: the work, and what may be done with it."""

from typing import Annotated

import typer

from collector.cli.arguments import (
    EveryJob,
    Exchange,
    JobId,
    JobIds,
    ManyExchanges,
    ManyStates,
    ManySymbols,
    ManyTypes,
    exchange_ids,
    job_states,
    job_types,
    timeframes,
    type_words,
)
from collector.cli.completion import symbols_of_exchange
from collector.cli.verb import Asked, give, verb
from collector.jobs.states import Status

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
            help=type_words(),
            autocompletion=job_types,
        ),
    ],
    symbol: Annotated[
        str | None,
        typer.Option(help="Symbol, such as BTC/USDT.", autocompletion=symbols_of_exchange),
    ] = None,
    timeframe: _Timeframe = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Begin here: a date, or 30d ago.")
    ] = None,
    until: Annotated[str | None, typer.Option("--until", help="End here (default: now).")] = None,
    interval_ms: Annotated[int | None, typer.Option(min=1000, help="Run this often.")] = None,
    cron: Annotated[str | None, typer.Option(help="Run at these times, UTC: '0 * * * *'.")] = None,
    priority: Annotated[int | None, typer.Option(min=0, max=1000, help="Lower goes first.")] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A parameter of its type; lists with commas."),
    ] = None,
) -> None:
    """Add one job. Adding the same again changes nothing and reports that.

    `collector add` is the short way to what a series needs.

    Example: `collector job add binance ohlcv_backfill --symbol BTC/USDT --timeframe 1m --since 90d`
    """
    from collector.cli.actions import jobs
    from collector.cli.actions.new_job import Wanted

    given = (exchange, job_type, symbol, timeframe, since, until, interval_ms, cron, priority)
    give(asked, jobs.add(asked, Wanted(*given, params=param or ())))


@verb(app, "list")
def listed(
    asked: Asked,
    exchange: Annotated[
        str | None, typer.Option(help="Only this exchange.", autocompletion=exchange_ids)
    ] = None,
    job_type: Annotated[
        str | None, typer.Option("--type", help="Only this type.", autocompletion=job_types)
    ] = None,
    symbol: Annotated[
        str | None, typer.Option(help="Only this symbol.", autocompletion=symbols_of_exchange)
    ] = None,
    timeframe: _Timeframe = None,
    status: Annotated[Status | None, typer.Option(help="Only with this status.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            help="Only in this state; done and paused as the table has them.",
            autocompletion=job_states,
        ),
    ] = None,
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
        "state": state,
    }
    give(asked, jobs.listed(asked, filters, limit, cursor))


@verb(app, "show")
def show(asked: Asked, job: JobId) -> None:
    """Show one job and its latest runs.

    Example: `collector job show binance BTC/USDT 1m ohlcv_backfill`
    """
    from collector.cli.actions import jobs

    give(asked, jobs.shown(asked, job))


def _bulk(name: str, does: str, example: str) -> None:
    """A verb that takes jobs, or options that name many of them."""

    def change(
        asked: Asked,
        jobs: JobIds = None,
        exchange: ManyExchanges = None,
        job_type: ManyTypes = None,
        symbol: ManySymbols = None,
        state: ManyStates = None,
        every: EveryJob = False,
    ) -> None:
        from collector.cli.actions import bulk_jobs

        many = bulk_jobs.Many(exchange, job_type, symbol, state, every)
        give(asked, bulk_jobs.changed(asked, name, jobs or [], many))

    change.__doc__ = f"""{does}

    With options instead of jobs it is done to all that have these values, finished ones left out.

    Example: `collector job {name} {example}`
    """
    verb(app, name)(change)


_bulk(
    "pause",
    "Stop jobs; a running one stops after its current page and keeps its place.",
    "--exchange binance",
)
_bulk("resume", "Let paused jobs run again, now.", "--state failed")
_bulk(
    "run",
    "Run jobs now, whatever their schedule; also finished and failed ones.",
    "binance BTC/USDT 1m ohlcv_incremental",
)
_bulk("remove", "Remove jobs. What they collected stays.", "--exchange binance --symbol ETH/BTC")
