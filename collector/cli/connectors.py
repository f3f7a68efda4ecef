"""`collector connector`: exchanges, their limits, and whether requests may be sent."""

from enum import StrEnum
from typing import Annotated

import typer

from collector.cli.arguments import Exchange
from collector.cli.verb import Asked, give, verb

app = typer.Typer(help="Exchanges: limits, pauses, bans.", no_args_is_help=True)


class Algorithm(StrEnum):
    """How a window counts."""

    SLIDING = "sliding_window"
    FIXED = "fixed_window"


@verb(app, "add")
def add(
    asked: Asked,
    exchange: Exchange,
    rate_limit: Annotated[int | None, typer.Option(min=1, help="Requests a period.")] = None,
    period_ms: Annotated[int | None, typer.Option(min=1, help="The period, in ms.")] = None,
    algorithm: Annotated[Algorithm | None, typer.Option(help="How the window counts.")] = None,
    max_concurrent_jobs: Annotated[int | None, typer.Option(min=1, help="Jobs at a time.")] = None,
    notes: Annotated[str | None, typer.Option(help="A word for your colleagues.")] = None,
) -> None:
    """Add an exchange. Limits that are not given are the exchange's own.

    Adding it again changes nothing and reports that.

    Example: `collector connector add binance --rate-limit 10 --period-ms 1000`
    """
    from collector.cli.actions import connectors

    figures = {
        "rate_limit": rate_limit,
        "rate_limit_period_ms": period_ms,
        "algorithm": algorithm.value if algorithm else None,
        "max_concurrent_jobs": max_concurrent_jobs,
    }
    give(asked, connectors.add(asked, exchange, figures, notes))


@verb(app, "set")
def change(
    asked: Asked,
    exchange: Exchange,
    rate_limit: Annotated[int | None, typer.Option(help="Requests a period.")] = None,
    period: Annotated[
        str | None,
        typer.Option("--period", "--period-ms", help="The period: 1s, 500ms, 5m, or ms."),
    ] = None,
    algorithm: Annotated[Algorithm | None, typer.Option(help="How the window counts.")] = None,
    window: Annotated[
        list[str] | None,
        typer.Option(help="A further limit, such as 6000/1m or 6000:weight/1m; 'none' for none."),
    ] = None,
    max_concurrent_jobs: Annotated[
        str | None, typer.Option(help="Jobs at a time; 'none' lifts the ceiling.")
    ] = None,
    priority_reserve: Annotated[
        int | None, typer.Option(help="Requests that are kept for urgent jobs.")
    ] = None,
    reserve_threshold: Annotated[
        float | None, typer.Option(help="The load from which on they are kept, 0 to 1.")
    ] = None,
    circuit: Annotated[
        list[str] | None,
        typer.Option(help="A setting of the circuit gate: circuit_min_closed_sec=120."),
    ] = None,
    notes: Annotated[str | None, typer.Option(help="A word for your colleagues.")] = None,
) -> None:
    """Change limits of an exchange; what is not given stays. Acts on the next token.

    Example: `collector connector set binance --rate-limit 500 --period 1m --max-concurrent-jobs 20`
    """
    from collector.cli.actions import connectors
    from collector.cli.connector_options import changes_of

    given = {
        "rate_limit": rate_limit,
        "rate_limit_period_ms": period,
        "algorithm": algorithm.value if algorithm else None,
        "windows": window,
        "max_concurrent_jobs": max_concurrent_jobs,
        "priority_reserve": priority_reserve,
        "reserve_threshold": reserve_threshold,
        "circuit": circuit,
        "notes": notes,
    }
    give(asked, connectors.changed(asked, exchange, changes_of(given)))


@verb(app, "list")
def listed(asked: Asked) -> None:
    """List exchanges with their status and budget.

    Example: `collector connector list`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.listed(asked))


@verb(app, "show")
def show(asked: Asked, exchange: Exchange) -> None:
    """Show everything about one exchange.

    Example: `collector connector show binance`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.shown(asked, exchange))


@verb(app, "pause")
def pause(
    asked: Asked,
    exchange: Exchange,
    until: Annotated[
        str | None, typer.Option(help="Ends by itself then: a date, or a span such as 2h.")
    ] = None,
) -> None:
    """Send nothing to an exchange until it is resumed. Jobs keep their place.

    Example: `collector connector pause binance --until 2h`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.paused(asked, exchange, until))


@verb(app, "resume")
def resume(asked: Asked, exchange: Exchange) -> None:
    """Lift a pause. A ban stays: it was imposed by the exchange.

    Example: `collector connector resume binance`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.resumed(asked, exchange))


@verb(app, "unblock")
def unblock(asked: Asked, exchange: Exchange) -> None:
    """Lift a block before the exchange's time is over, at your own risk. A pause stays.

    Example: `collector connector unblock binance`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.unblocked(asked, exchange))


@verb(app, "remove")
def remove(
    asked: Asked,
    exchange: Exchange,
    cascade: Annotated[bool, typer.Option("--cascade", help="Remove its jobs, too.")] = False,
) -> None:
    """Remove an exchange; refused while it has active jobs. What was collected stays.

    Example: `collector connector remove binance --cascade`
    """
    from collector.cli.actions import connectors

    give(asked, connectors.removed(asked, exchange, cascade))
