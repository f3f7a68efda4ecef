"""`collector trades`: what was traded, on the screen and in files."""

from pathlib import Path
from typing import Annotated

import typer

from collector.cli.arguments import End, Exchange, Start, Symbol
from collector.cli.failures import UsageMistake
from collector.cli.files import Force, Form, FormOption, form_of
from collector.cli.verb import Asked, given, verb

app = typer.Typer()


@verb(app, "trades")
def trades(
    asked: Asked,
    exchange: Exchange,
    symbol: Symbol,
    start: Start = None,
    end: End = None,
    limit: Annotated[
        int, typer.Option(min=1, max=100_000, help="At most so many on the screen.")
    ] = 50,
    out: Annotated[
        Path | None, typer.Option(help="Write all of them to this file; - is standard output.")
    ] = None,
    form: FormOption = None,
    escape: Annotated[
        bool,
        typer.Option("--escape", help="CSV: no text that a spreadsheet takes for a formula."),
    ] = False,
    force: Force = False,
) -> None:
    """Print trades: from `--since` on, or else the newest. With `--out` write them to a file.

    The file is CSV, Parquet or Arrow, has no limit, and appears whole or not at all.

    Example: `collector trades binance BTC/USDT --since 2025-01-01 --until 2025-02-01 --out btc.csv`
    """
    from collector.cli.actions import export as files
    from collector.cli.actions import trades as actions

    if out is None:
        if form is not None or force or escape:
            raise UsageMistake("--format, --escape and --force are for a file: add --out")
        found = actions.range_of(asked, exchange, symbol, start, end)
        given(asked, actions.shown(found, limit, newest=start is None))
    else:
        chosen = form_of(asked, form, out)
        if escape and chosen is not Form.CSV:
            raise UsageMistake("--escape is for CSV")
        found = actions.range_of(asked, exchange, symbol, start, end)
        given(asked, files.export(actions.rows_of(found), chosen.value, out, force, escape=escape))
