"""`collector coverage` and `collector report`: what is stored, and what it lacks."""

from typing import Annotated

import typer

from collector.cli.arguments import exchange_ids, timeframes
from collector.cli.completion import symbols_of_exchange
from collector.cli.verb import Asked, give, verb

app = typer.Typer()
report = typer.Typer(help="Reports on stored series.", no_args_is_help=True)

_Exchange = Annotated[
    str | None,
    typer.Argument(metavar="EXCHANGE", help="Only this exchange.", autocompletion=exchange_ids),
]
_Symbol = Annotated[
    str | None,
    typer.Argument(metavar="SYMBOL", help="Only this symbol.", autocompletion=symbols_of_exchange),
]
_Timeframe = Annotated[
    str | None, typer.Option("--timeframe", help="Only this one.", autocompletion=timeframes)
]
_Limit = Annotated[int, typer.Option(min=1, max=100, help="At most so many series.")]
_Cursor = Annotated[str | None, typer.Option(help="Go on after an earlier list.")]


@verb(app, "coverage")
def coverage(
    asked: Asked,
    exchange: _Exchange = None,
    symbol: _Symbol = None,
    timeframe: _Timeframe = None,
    limit: _Limit = 20,
    cursor: _Cursor = None,
) -> None:
    """Count what is stored of each series: bars present, without a trade, and missing.

    Example: `collector coverage binance BTC/USDT --timeframe 1m`
    """
    from collector.cli.actions import reports

    wanted = reports.filter_of(exchange, symbol, timeframe, limit, cursor)
    give(asked, reports.coverage(asked, wanted))


@verb(report, "missing")
def missing(
    asked: Asked,
    exchange: _Exchange = None,
    symbol: _Symbol = None,
    timeframe: _Timeframe = None,
    limit: _Limit = 20,
    cursor: _Cursor = None,
) -> None:
    """Show what series lack, where it is worst, and what to do. Exits with 10 above the limit.

    Example: `collector report missing binance --timeframe 1m`
    """
    from collector.cli.actions import reports

    wanted = reports.filter_of(exchange, symbol, timeframe, limit, cursor)
    give(asked, reports.missing(asked, wanted))


@verb(report, "validation")
def validation(
    asked: Asked,
    exchange: _Exchange = None,
    symbol: _Symbol = None,
    timeframe: _Timeframe = None,
    limit: _Limit = 20,
    cursor: _Cursor = None,
) -> None:
    """Check stored series, without asking an exchange. Exits with 5 when a check fails.

    Example: `collector report validation binance BTC/USDT`
    """
    from collector.cli.actions import reports

    wanted = reports.filter_of(exchange, symbol, timeframe, limit, cursor)
    give(asked, reports.validation(asked, wanted))
