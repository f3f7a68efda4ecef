"""`collector add`: the short way to a series that is kept complete."""

from typing import Annotated

import typer

from collector.cli.arguments import Exchange
from collector.cli.arguments import timeframes as completed
from collector.cli.completion import symbols_of_exchange
from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "add")
def add(
    asked: Asked,
    exchange: Exchange,
    symbols: Annotated[
        list[str],
        typer.Argument(
            metavar="SYMBOL...",
            help="Symbols, such as BTC/USDT, or patterns, such as '*/USDT'.",
            autocompletion=symbols_of_exchange,
        ),
    ],
    timeframes: Annotated[
        str, typer.Option(help="Timeframes, separated by commas.", autocompletion=completed)
    ] = "1m",
    since: Annotated[
        str | None,
        typer.Option("--since", help="History begins here (default: at the first bar)."),
    ] = None,
    backfill: Annotated[bool, typer.Option(help="Fetch the history, too.")] = True,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before adding a pattern.")] = False,
) -> None:
    """Collect series: creates the missing connector and jobs, and lists those that existed.

    A pattern is every market of the exchange that is like it. How many they are and what they cost
    is shown first.

    Example: `collector add binance BTC/USDT ETH/USDT --timeframes 1m,1h --since 2024-01-01`
    """
    from collector.cli.actions import streams

    give(asked, streams.add(asked, exchange, symbols, timeframes, since, backfill, yes))
