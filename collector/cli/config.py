"""`collector config`: the settings, as the programs read them."""

import typer

from collector.cli.verb import Asked, given, verb

app = typer.Typer(help="Settings: the file and the environment.", no_args_is_help=True)


@verb(app, "check")
def check(asked: Asked) -> None:
    """Name every mistake in the settings, and show each value with where it comes from.

    Needs no database. Exits with 8 when there is a mistake. Secrets are hidden.

    Example: `collector config check`
    """
    from collector.cli.actions import config

    given(asked, config.checked(asked))
