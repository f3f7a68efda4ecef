"""`collector read` and `collector export`: what was collected, on the screen and in files."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from collector.cli.arguments import Exchange, Symbol, Timeframe
from collector.cli.failures import UsageMistake
from collector.cli.verb import Asked, given, verb

app = typer.Typer()


class Gaps(StrEnum):
    INCLUDE = "include"
    OMIT = "omit"


class Form(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


Start = Annotated[str | None, typer.Option(help="From here: a date, epoch ms, or 30d ago.")]
End = Annotated[str | None, typer.Option(help="Up to here, which is not included.")]
GapsOption = Annotated[Gaps, typer.Option(help="Show slots without a bar, or leave them out.")]
AsOf = Annotated[str | None, typer.Option(help="What was known at this moment.")]


@verb(app, "read")
def read(
    asked: Asked,
    exchange: Exchange,
    symbol: Symbol,
    timeframe: Timeframe,
    start: Start = None,
    end: End = None,
    gaps: GapsOption = Gaps.INCLUDE,
    as_of: AsOf = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many bars.")] = 50,
) -> None:
    """Print bars: from `--start` on, or else the newest. `collector export` has no limit.

    Example: `collector read binance BTC/USDT 1h --start 2025-01-01 --limit 24`
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
    form: Annotated[
        Form | None, typer.Option("--format", help="Default: what the file's name ends with.")
    ] = None,
    start: Start = None,
    end: End = None,
    gaps: GapsOption = Gaps.INCLUDE,
    as_of: AsOf = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write bars to a file: CSV, Parquet or Arrow. The file appears whole, or not at all.

    Example: `collector export binance BTC/USDT 1m --start 2025-01-01 --out btc.parquet`
    """
    chosen = _form(form, out)
    if str(out) == "-" and asked.json:
        raise UsageMistake("--json and --out - both want standard output")
    from collector.cli.actions import candles
    from collector.cli.actions import export as actions

    wanted = candles.Range(start, end, gaps.value, as_of)
    series = (exchange, symbol, timeframe)
    given(asked, actions.export(asked, series, wanted, chosen.value, out, force))


def _form(form: Form | None, out: Path) -> Form:
    """The form that was asked for, else the one the file's name tells."""
    if form is not None:
        return form
    try:
        return Form(out.suffix.removeprefix("."))
    except ValueError:
        raise UsageMistake("--format is csv, parquet or arrow") from None
