"""`collector read` and `collector export`: what was collected, on the screen and in files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from collector.cli.arguments import End, Exchange, Start, Symbol, Timeframe
from collector.cli.files import Force, FormOption, form_of
from collector.cli.verb import Asked, given, verb

app = typer.Typer()


class GapChoice(StrEnum):
    INCLUDE = "include"
    OMIT = "omit"


GapsOption = Annotated[GapChoice, typer.Option(help="Show slots without a bar, or leave them out.")]
AsOf = Annotated[str | None, typer.Option(help="What was known at this moment.")]


@verb(app, "read")
def read(
    asked: Asked,
    exchange: Exchange,
    symbol: Symbol,
    timeframe: Timeframe,
    start: Start = None,
    end: End = None,
    gaps: GapsOption = GapChoice.INCLUDE,
    as_of: AsOf = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many bars.")] = 50,
) -> None:
    """Print bars: from `--since` on, or else the newest. `collector export` has no limit.

    Example: `collector read binance BTC/USDT 1h --since 2025-01-01 --limit 24`
    """
    from collector.cli.actions import candles

    wanted = candles.Range(start, end, gaps.value, as_of)
    given(asked, candles.read(asked, exchange, symbol, timeframe, wanted, limit))


@verb(app, "export")
def export(
    asked: Asked,
    exchange: Exchange,
    symbol: Symbol,
    timeframe: Timeframe,
    out: Annotated[Path, typer.Option(help="The file to write; - is standard output.")],
    form: FormOption = None,
    start: Start = None,
    end: End = None,
    gaps: GapsOption = GapChoice.INCLUDE,
    as_of: AsOf = None,
    force: Force = False,
) -> None:
    """Write bars to a file: CSV, Parquet or Arrow. The file appears whole, or not at all.

    Example: `collector export binance BTC/USDT 1m --since 2025-01-01 --out btc.parquet`
    """
    chosen = form_of(asked, form, out)
    from collector.cli.actions import candles
    from collector.cli.actions import export as actions

    wanted = candles.Range(start, end, gaps.value, as_of)
    rows = candles.rows_of(asked, exchange, symbol, timeframe, wanted)
    given(asked, actions.export(rows, chosen.value, out, force))
