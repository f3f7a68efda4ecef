"""`datalayer`: backfill, resample, validate, repair and report, as its specification names them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from collector.cli.arguments import exchange_ids, split
from collector.cli.arguments import timeframes as completed
from collector.cli.main import run
from collector.cli.older_names import newer_name
from collector.cli.repair import repair
from collector.cli.verb import Asked, give, given, verb

app = typer.Typer(
    name="datalayer",
    help="Loads, resamples, checks and repairs OHLCV series. Exit codes: 0 success, 3 E_API, "
    "4 E_RATE_LIMIT, 5 E_SCHEMA, 6 E_TIME_DRIFT, 7 E_WRITE, 8 E_CONFIG, 9 E_AUTH, 10 E_GAPS.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    # Typer sees a missing flag as None, and handling that imports pydantic, which takes 100 ms.
    context_settings={"default_map": {"help": False}, "token_normalize_func": newer_name},
)

Symbols = Annotated[
    str, typer.Option("--symbols", help="BTCUSDT,ETHUSDT or BTC/USDT, or ALL that is there.")
]
Tfs = Annotated[
    str, typer.Option("--tfs", help="Timeframes, separated by commas.", autocompletion=completed)
]
Exchange = Annotated[
    str | None,
    typer.Option(
        "--exchange", help="Exchange id (default: api.adapter).", autocompletion=exchange_ids
    ),
]


@verb(app, "backfill")
def backfill(
    asked: Asked,
    symbols: Symbols,
    since: Annotated[
        str | None, typer.Option("--since", help="History begins here (default: the first bar).")
    ] = None,
    exchange: Exchange = None,
) -> None:
    """Load the 1m history of symbols up to now, and what it still lacks. Safe to repeat.

    Starts a worker for as long as it takes when none is running.

    Example: `datalayer backfill --symbols BTCUSDT,ETHUSDT --since 2023-01-01`
    """
    from collector.cli.actions import backfill as action

    give(asked, action.backfill(asked, split(symbols, "--symbols"), since, exchange))


@verb(app, "resample")
def resample(
    asked: Asked,
    symbols: Symbols,
    tfs: Tfs = "",
    exchange: Exchange = None,
) -> None:
    """Make longer bars from the stored minutes (default: resample.tfs of the settings).

    Example: `datalayer resample --symbols BTCUSDT,ETHUSDT --tfs 5m,15m,1h`
    """
    from collector.cli.actions import lake_answers

    frames = split(tfs, "--tfs") if tfs else asked.settings().resample.tfs
    given(asked, lake_answers.resample(asked, split(symbols, "--symbols"), frames, exchange))


@verb(app, "validate")
def validate(
    asked: Asked,
    symbols: Symbols,
    tfs: Tfs = "1m,5m,15m,1h",
    out: Annotated[Path, typer.Option("--out", help="The report.")] = Path("reports/validate.json"),
    exchange: Exchange = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", min=0, help="Bars to compare with the exchange; 0 sends no request."
        ),
    ] = None,
) -> None:
    """Check series: types, order, OHLC, volume, calendar, the exchange's own bars, the clock.

    Example: `datalayer validate --symbols BTCUSDT --tfs 1m,5m,15m,1h --out reports/validate.json`
    """
    from collector.cli.actions import lake_answers

    names, frames = split(symbols, "--symbols"), split(tfs, "--tfs")
    give(asked, lake_answers.validate(asked, names, frames, exchange, out, samples))


@verb(app, "missing-report")
def missing_report(
    asked: Asked,
    symbols: Symbols,
    tfs: Tfs = "1m,5m,15m,1h",
    out: Annotated[
        Path, typer.Option("--out", help="A .csv or .parquet file; a summary is put beside it.")
    ] = Path("reports/missing.csv"),
    exchange: Exchange = None,
) -> None:
    """Report what each series lacks, where it is worst and what to do.

    Example: `datalayer missing-report --symbols ALL --tfs 1m,5m,15m,1h --out reports/missing.csv`
    """
    from collector.cli.actions import lake_answers

    names, frames = split(symbols, "--symbols"), split(tfs, "--tfs")
    give(asked, lake_answers.missing_report(asked, names, frames, exchange, out))


verb(app, "repair")(repair)


def main() -> None:
    """The entry point of the `datalayer` script."""
    sys.exit(run(sys.argv[1:], app))


if __name__ == "__main__":
    main()
