"""`collector key`: who may use the API."""

import hashlib
import secrets
from enum import StrEnum
from typing import Annotated

import typer

from collector.cli.verb import Asked, verb

app = typer.Typer(help="Keys of the API.", no_args_is_help=True)


class Role(StrEnum):
    """What a key may do; each may do what the one before may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"


@verb(app, "new")
def new(
    asked: Asked,
    role: Annotated[
        Role,
        typer.Option(help="viewer reads; operator also pauses, runs and adds; admin also removes."),
    ] = Role.VIEWER,
) -> None:
    """Make a key. It is printed once and kept nowhere; the API is told its line.

    Example: `collector key new --role operator`
    """
    key = new_key()
    line = key_line(role, key)
    if asked.json:
        from collector.cli.answer import to_json

        print(to_json({"role": role.value, "key": key, "line": line}))
        return
    print(f"key (shown only now):   {key}")
    print(f"for COLLECTOR_API_KEYS: {line}")


def new_key() -> str:
    """256 random bits, recognisable when it turns up where it should not."""
    return f"ck_{secrets.token_urlsafe(32)}"


def key_line(role: Role, key: str) -> str:
    """The entry of COLLECTOR_API_KEYS that lets this key in; it does not tell the key."""
    return f"{role.value}:{hashlib.sha256(key.encode()).hexdigest()}"
