"""`backup` and `restore`: database and lake together."""

from typing import Annotated

import typer

from collector.cli.verb import Asked, give, verb

app = typer.Typer()

Place = Annotated[str, typer.Argument(help="A folder, or s3://bucket/prefix.")]


@verb(app, "backup")
def backup(asked: Asked, place: Place) -> None:
    """Copy the database and the lake to an empty folder, while everything runs.

    The files in it hold at least what the cursors claim.

    Example: `collector backup /mnt/backups/2026-01-31`
    """
    from collector.cli.actions.backup import backed_up

    give(asked, backed_up(asked, place))


@verb(app, "restore")
def restore(asked: Asked, place: Place) -> None:
    """Put a backup back into an empty database and an empty lake, and migrate it if it is older.

    Example: `collector restore /mnt/backups/2026-01-31`
    """
    from collector.cli.actions.backup import restored

    give(asked, restored(asked, place))
