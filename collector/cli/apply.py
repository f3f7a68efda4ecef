"""`collector plan` and `collector apply`: the settings file and the database."""

from typing import Annotated

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer()

Prune = Annotated[
    bool, typer.Option("--prune", help="Delete what left the file, instead of pausing it.")
]


@verb(app, "plan")
def plan(asked: Asked, prune: Prune = False) -> None:
    """Show what `apply` would change so that everything is as the settings file asks.

    Example: `collector plan`
    """
    from collector.cli.actions import apply

    give(asked, apply.planned(asked, prune))


@verb(app, "apply")
def apply(asked: Asked, prune: Prune = False) -> None:
    """Create and change connectors and jobs as the settings file asks. `up` does it at its start.

    A stream that left the file is paused. What the file does not name stays as it is.

    Example: `collector apply --prune`
    """
    from collector.cli.actions import apply as actions

    give(asked, actions.applied(asked, prune))
