"""`collector quarantine`: rows that exchanges sent and that are no bars."""

from typing import Annotated

import typer

from collector.cli.arguments import Exchange, timeframes
from collector.cli.completion import symbols_of_exchange
from collector.cli.verb import Asked, given, verb

app = typer.Typer()


@verb(app, "quarantine")
def quarantine(
    asked: Asked,
    exchange: Exchange,
    symbol: Annotated[
        str | None,
        typer.Argument(
            metavar="SYMBOL",
            help="Only this symbol, such as BTC/USDT.",
            autocompletion=symbols_of_exchange,
        ),
    ] = None,
    timeframe: Annotated[
        str | None,
        typer.Option("--timeframe", help="Only this timeframe.", autocompletion=timeframes),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier list.")] = None,
) -> None:
    """Show rows that were refused, and why: their bars are missing until good ones come.

    Example: `collector quarantine binance BTC/USDT --timeframe 1m`
    """
    from collector.cli.actions import quarantine as actions

    given(asked, actions.listed(asked, exchange, symbol, timeframe, limit, cursor))
