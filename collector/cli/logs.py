"""`collector logs`: what the programs of `collector up` have logged."""

from enum import StrEnum
from typing import Annotated

import typer

from collector.cli.arguments import exchange_ids
from collector.cli.completion import jobs_by_id
from collector.cli.verb import Asked, verb

app = typer.Typer()


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


@verb(app, "logs")
def logs(
    asked: Asked,
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROGRAM...]", help="api, worker-1, mongod; all but mongod else."),
    ] = None,
    tail: Annotated[int, typer.Option(min=0, max=100_000, help="The last so many lines.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    level: Annotated[LogLevel | None, typer.Option(help="At least of this level.")] = None,
    exchange: Annotated[
        str | None, typer.Option(help="Only of this exchange.", autocompletion=exchange_ids)
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(help="Only of the job with this id.", autocompletion=jobs_by_id),
    ] = None,
    where: Annotated[bool, typer.Option("--where", help="Only show where they are.")] = False,
) -> None:
    """Show the last lines of the programs that `collector up` runs, from all their logs.

    Example: `collector logs --follow --level warning --exchange binance`
    """
    import contextlib

    from collector.cli.actions import logs as actions

    wanted = actions.WantedLines(
        programs or [], tail, level.value if level else None, exchange, job
    )
    if where:
        actions.show_places(asked, wanted)
        return
    # Ctrl-C is how one leaves: nothing went wrong.
    with contextlib.suppress(KeyboardInterrupt):
        actions.show(asked, wanted, follow=follow)
