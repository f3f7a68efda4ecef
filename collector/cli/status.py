"""`collector status` and `collector watch`: how it stands, once and all the time."""

from typing import Annotated

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "status")
def status(asked: Asked) -> None:
    """Show how it stands now: exchanges, budgets, jobs, workers, lag.

    Example: `collector status`
    """
    from collector.cli.actions import status as actions

    give(asked, actions.status(asked))


@verb(app, "watch")
def watch(
    asked: Asked,
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between looks.")] = 1.0,
) -> None:
    """Show how it stands until Ctrl-C. With `--json`, or into a pipe, a line each time.

    Example: `collector watch --demo`
    """
    import asyncio
    import contextlib

    from collector.cli.actions import status as actions

    # Ctrl-C is how one leaves: nothing went wrong.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(actions.watch(asked, every))
