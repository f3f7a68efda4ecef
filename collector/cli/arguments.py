"""Arguments that several verbs share, with what a shell may complete them to."""

from __future__ import annotations

from typing import Annotated

import typer

from collector.cli.completion import jobs_by_id, symbols_of_exchange

_TIMEFRAMES = ("1m", "3m", "5m", "15m", "30m", "1h", "2h", "4h", "6h", "12h", "1d", "1w", "1M")


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
    from collector.jobs import types

    return [each.name for each in types.for_exchanges() if each.name.startswith(incomplete)]


def job_states(incomplete: str) -> list[str]:
    """The words for states of jobs that begin like this."""
    words = ("idle", "queued", "running", "waiting_rate_limit", "success", "failed")
    return [word for word in (*words, "done", "paused") if word.startswith(incomplete)]


def type_words() -> str:
    """The types of jobs by their subject."""
    from collector.jobs import types

    by_scope: dict[str, list[str]] = {}
    for each in types.for_exchanges():
        by_scope.setdefault(each.scope.value, []).append(each.name)
    return "; ".join(f"of one {scope}: {', '.join(names)}" for scope, names in by_scope.items())


def split(text: str, option: str) -> list[str]:
    """The items between the commas. Raises UsageMistake when there is none."""
    from collector.cli.failures import UsageMistake

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageMistake(f"{option} names nothing")
    return list(dict.fromkeys(names))


Exchange = Annotated[
    str,
    typer.Argument(
        metavar="EXCHANGE", help="Exchange id, such as binance.", autocompletion=exchange_ids
    ),
]
Symbol = Annotated[
    str,
    typer.Argument(
        metavar="SYMBOL",
        help="Symbol, such as BTC/USDT or BTCUSDT.",
        autocompletion=symbols_of_exchange,
    ),
]
Timeframe = Annotated[
    str,
    typer.Argument(metavar="TF", help="Timeframe, such as 1m or 1h.", autocompletion=timeframes),
]
Start = Annotated[
    str | None,
    typer.Option("--since", help="From here: a date, epoch ms, or 30d ago."),
]
End = Annotated[str | None, typer.Option("--until", help="Up to here, which is not included.")]
_MEANT = "A job's id, the beginning of it, or EXCHANGE SYMBOL TIMEFRAME TYPE as far as needed."
JobId = Annotated[list[str], typer.Argument(metavar="JOB", help=_MEANT, autocompletion=jobs_by_id)]
JobIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[JOB...]", help=_MEANT, autocompletion=jobs_by_id),
]
ManyExchanges = Annotated[
    list[str] | None,
    typer.Option("--exchange", help="All of this exchange.", autocompletion=exchange_ids),
]
ManyTypes = Annotated[
    list[str] | None,
    typer.Option("--type", help="All of this type.", autocompletion=job_types),
]
ManySymbols = Annotated[
    list[str] | None,
    typer.Option("--symbol", help="All of this symbol.", autocompletion=symbols_of_exchange),
]
ManyStates = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        help="All in this state, such as failed, paused or running.",
        autocompletion=job_states,
    ),
]
EveryJob = Annotated[bool, typer.Option("--all", help="All jobs.")]
