"""`collector doctor`: whether everything that a collector needs is there and works."""

from typing import Annotated

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "doctor")
def doctor(
    asked: Asked,
    ask: Annotated[
        bool, typer.Option("--ask", help="Also send each exchange one request, by a token.")
    ] = False,
) -> None:
    """Check MongoDB, clocks, disk, store, keys, exchanges, versions, FXCM and Redis.

    Every line is ok, a warning or a problem, with what to do. It works without MongoDB, too.
    Exits with 1 when there is a problem.

    Example: `collector doctor --ask`
    """
    from collector.cli.actions.doctor import examined

    give(asked, examined(asked, ask=ask))
