"""`collector key`: keys for the API."""

import hashlib
import secrets
from enum import StrEnum
from typing import Annotated

import typer

from collector.cli.verb import Asked, verb
from collector.keys import ApiKeys, Role

app = typer.Typer(help="Keys of the API.", no_args_is_help=True)


class KeyRole(StrEnum):
    """The roles that a key may have, as the command line spells them."""

    VIEWER = Role.VIEWER.word
    OPERATOR = Role.OPERATOR.word
    ADMIN = Role.ADMIN.word


@verb(app, "new")
def new(
    asked: Asked,
    role: Annotated[
        KeyRole,
        typer.Option(help="viewer reads; operator also pauses, runs and adds; admin also removes."),
    ] = KeyRole.VIEWER,
    name: Annotated[
        str | None, typer.Option(help="Shown in the API's log with every request of this key.")
    ] = None,
) -> None:
    """Make a key. It is printed once and kept nowhere; the API gets its line.

    Example: `collector key new --role operator --name grafana`
    """
    key = new_key()
    line = key_line(role, key, name)
    ApiKeys.parse(line)  # A name that the API would refuse is refused here.
    if asked.json:
        from collector.cli.output import to_json

        print(to_json({"role": role, "key": key, "line": line}))
        return
    print(f"key (shown only now):   {key}")
    print(f"for COLLECTOR_API_KEYS: {line}")


def new_key() -> str:
    """256 random bits, recognisable when it turns up where it should not."""
    return f"ck_{secrets.token_urlsafe(32)}"


def key_line(role: str, key: str, name: str | None = None) -> str:
    """The entry of COLLECTOR_API_KEYS that accepts this key; the key cannot be derived from it."""
    named = f":{name}" if name else ""
    return f"{role}:{hashlib.sha256(key.encode()).hexdigest()}{named}"
