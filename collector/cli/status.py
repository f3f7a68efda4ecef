"""`collector status` and `collector watch`: the current state, once or continuously."""

from typing import Annotated

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer()


@verb(app, "status")
def status(asked: Asked) -> None:
    """Show what is wrong, then exchanges, budgets, jobs, workers and lag.

    Exits with 1 when something is wrong, so that a script can ask.

    Example: `collector status`
    """
    from collector.cli.actions import status as actions

    give(asked, actions.status(asked))


@verb(app, "troubles")
def troubles(asked: Asked) -> None:
    """List what is wrong now, the most urgent first. Exits with 1 when something is.

    Example: `collector troubles`
    """
    from collector.cli.actions import status as actions

    give(asked, actions.troubles(asked))


@verb(app, "watch")
def watch(
    asked: Asked,
    every: Annotated[float, typer.Option(min=0.2, max=3600, help="Seconds between looks.")] = 1.0,
    plain: Annotated[bool, typer.Option("--plain", help="No viewer: print what is there.")] = False,
    mode: Annotated[int, typer.Option(min=1, max=7, help="What the viewer shows first.")] = 1,
) -> None:
    """Watch it until Ctrl-C or q: exchanges, jobs, workers, lag, prices, history budget, back-off.

    Over the API: the one of this machine, or COLLECTOR_URL with the key COLLECTOR_TOKEN. With
    `--plain`, `--json` or into a pipe it prints a line each time, from the database when no
    COLLECTOR_URL is set.

    Example: `collector watch --demo`
    """
    import asyncio
    import contextlib

    from collector.progress import console

    # Ctrl-C is how one leaves: nothing went wrong.
    with contextlib.suppress(KeyboardInterrupt):
        if plain or asked.json or not console().is_terminal:
            from collector.cli.actions import status as actions

            asyncio.run(actions.watch(asked, every))
        else:
            from collector.cli.actions.viewer import view

            view(asked, every, str(mode))
