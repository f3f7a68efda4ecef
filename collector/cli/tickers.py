"""`collector tickers`: the last prices of an exchange."""

from typing import Annotated

import typer

from collector.cli.arguments import Exchange
from collector.cli.completion import symbols_of_exchange
from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "tickers")
def tickers(
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
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier list.")] = None,
) -> None:
    """Show the last price of every market of an exchange, or of one.

    Example: `collector tickers binance BTC/USDT`
    """
    from collector.cli.actions import ticker_board

    give(asked, ticker_board.listed(asked, exchange, symbol, limit, cursor))
