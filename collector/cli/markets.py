"""`collector markets`: what an exchange lists."""

from typing import Annotated

import typer

from collector.cli.arguments import Exchange
from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "markets")
def markets(
    asked: Asked,
    exchange: Exchange,
    search: Annotated[
        str | None,
        typer.Option(help="Only symbols with these letters, or like a pattern: btc, '*/USDT'."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also those that were delisted.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="At most so many.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier list.")] = None,
) -> None:
    """List the markets of an exchange, as last seen.

    Example: `collector markets binance --search '*/USDT'`
    """
    from collector.cli.actions import markets as actions

    give(asked, actions.listed(asked, exchange, search, every, limit, cursor))
