"""`collector read` and `collector export`: what was collected, on the screen and in files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from collector.cli.arguments import End, Exchange, Start, Symbol, Timeframe
from collector.cli.files import BarForm, Force
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
    out: Annotated[
        Path, typer.Option(help="The file, - for standard output, or the other program's folder.")
    ],
    form: Annotated[
        BarForm | None, typer.Option("--format", help="Default: what the file's name ends with.")
    ] = None,
    start: Start = None,
    end: End = None,
    gaps: Annotated[
        GapChoice | None,
        typer.Option(help="Slots without a bar; freqtrade and nautilus have none, others all."),
    ] = None,
    as_of: AsOf = None,
    force: Force = False,
    instrument: Annotated[
        str | None, typer.Option(help="For nautilus: its id (default: such as BTCUSDT.BINANCE).")
    ] = None,
    price_precision: Annotated[
        int | None, typer.Option(min=0, max=16, help="For nautilus: decimals of prices.")
    ] = None,
    size_precision: Annotated[
        int | None, typer.Option(min=0, max=16, help="For nautilus: decimals of volumes.")
    ] = None,
) -> None:
    """Write bars to a file: CSV, Parquet or Arrow, or as freqtrade or Nautilus keeps its own.

    The file appears whole, or not at all.

    Example: `collector export binance BTC/USDT 1m --since 2025-01-01 --out btc.parquet`

    Example: `collector export binance BTC/USDT 1h --format freqtrade --out user_data/data/binance`

    Example: `collector export binance BTC/USDT 1m --format nautilus --out catalog`
    """
    from collector.cli.actions import candles, export_bars

    wanted = candles.Range(start, end, as_of=as_of)
    options = export_bars.ForNautilus(instrument, price_precision, size_precision)
    bars = export_bars.BarsToExport(
        exchange, symbol, timeframe, wanted, gaps.value if gaps else None
    )
    given(asked, export_bars.export_bars(asked, bars, form, out, force, options))
