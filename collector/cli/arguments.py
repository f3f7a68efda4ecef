"""Arguments that several verbs share, with what a shell may complete them to."""

from __future__ import annotations

from typing import Annotated

import typer

_TIMEFRAMES = ("1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w")


def exchange_ids(incomplete: str) -> list[str]:
    """The exchange ids that begin like this. Looks at file names; imports no exchange library."""
    from collector.exchanges.registry import known_exchanges

    return [name for name in known_exchanges() if name.startswith(incomplete)]


def timeframes(incomplete: str) -> list[str]:
    """Customary timeframes that begin like this; the last of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _TIMEFRAMES if name.startswith(last)]


def job_types(incomplete: str) -> list[str]:
    """The types of jobs that begin like this."""
    from collector.jobs.job import PRIORITIES

    return [name for name in sorted(PRIORITIES) if name.startswith(incomplete)]


Exchange = Annotated[
    str,
    typer.Argument(
        metavar="EXCHANGE", help="Exchange id, such as binance.", autocompletion=exchange_ids
    ),
]
Symbol = Annotated[str, typer.Argument(metavar="SYMBOL", help="Symbol, such as BTC/USDT.")]
Timeframe = Annotated[
    str,
    typer.Argument(metavar="TF", help="Timeframe, such as 1m or 1h.", autocompletion=timeframes),
]
Start = Annotated[str | None, typer.Option(help="From here: a date, epoch ms, or 30d ago.")]
End = Annotated[str | None, typer.Option(help="Up to here, which is not included.")]
JobId = Annotated[str, typer.Argument(metavar="ID", help="A job's id.")]
JobIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of jobs.")]
