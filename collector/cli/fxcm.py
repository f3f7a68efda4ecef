"""`collector fxcm`: whether FXCM can be used from this machine."""

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer(help="FXCM: what it needs on this machine.", no_args_is_help=True)


@verb(app, "check")
def check(asked: Asked) -> None:
    """Show which Python and which SDK are used, and whether FXCM's server answers.

    It does not log in, so a worker that holds the account's session keeps it. Fails with E_CONFIG
    when the SDK is missing, and with E_API when the server does not answer.

    Example: `collector fxcm check`
    """
    from collector.cli.actions import fxcm

    give(asked, fxcm.checked(asked.settings()))
