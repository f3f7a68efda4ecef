"""`repair`, of `collector` and of `datalayer`: damaged files set aside, lost bars fetched again."""

from typing import Annotated

import typer

from collector.cli.arguments import exchange_ids
from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "repair")
def repair(
    asked: Asked,
    symbols: Annotated[
        str, typer.Option("--symbols", help="BTCUSDT,ETHUSDT or BTC/USDT (default: ALL).")
    ] = "ALL",
    exchange: Annotated[
        str | None,
        typer.Option(
            "--exchange", help="Exchange id (default: api.adapter).", autocompletion=exchange_ids
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; fails when something is damaged.")
    ] = False,
) -> None:
    """Read every file, set damaged ones aside, rebuild what can be, and fetch the rest again.

    What finished jobs have fetched and the files no longer hold is fetched, too.

    Example: `collector repair --exchange binance`

    Example: `datalayer repair --symbols BTCUSDT --exchange binance`
    """
    from collector.cli.actions.repair import repaired
    from collector.cli.arguments import split

    give(asked, repaired(asked, split(symbols, "--symbols"), exchange, dry_run=dry_run))
