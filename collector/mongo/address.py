"""The address of a MongoDB: its URI, with user and password put in when they are given apart.

A password may hold any character. Inside a URI it has to be percent-encoded, which people and
compose files do not do; so it is taken as it is, from a setting or a file, and encoded here.
No message shows it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from collector.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_SCHEMES = ("mongodb", "mongodb+srv")
_HINT = (
    "user and password in it must be percent-encoded;"
    " mongo_user and mongo_password (or mongo_password_file) take them as they are"
)


def address(uri: str, user: str | None, password: str | None) -> str:
    """`uri` with user and password in it. Raises ConfigError when they do not fit together."""
    scheme, found, rest = uri.partition("://")
    if not found or scheme not in _SCHEMES:
        raise ConfigError("mongo_uri must begin with mongodb:// or mongodb+srv://")
    hosts, _, path = rest.partition("/")
    if "@" in path.partition("?")[0]:
        # A slash in a password: what is before it would be taken for a host and a port.
        raise ConfigError(f"mongo_uri is not the address of a MongoDB: {_HINT}")
    if user is None and password is None:
        return uri
    if user is None or password is None:
        raise ConfigError(
            "mongo_user needs mongo_password or mongo_password_file, and they need it"
        )
    if "@" in hosts.partition("?")[0]:
        raise ConfigError("mongo_uri names a user and so does mongo_user: remove one of them")
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def password_in(path: Path) -> str:
    """What the file holds, without the line end that editors add."""
    try:
        text = path.read_text(encoding="utf-8").rstrip("\r\n")
    except OSError as error:
        raise ConfigError(f"mongo_password_file {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"mongo_password_file {path} is not text") from None
    if not text:
        raise ConfigError(f"mongo_password_file {path} is empty")
    return text


def for_other_processes(uri: str) -> dict[str, str]:
    """The environment in which another process uses this address, whatever its file."""
    login = ("USER", "PASSWORD", "PASSWORD_FILE")
    return {"COLLECTOR_MONGO_URI": uri, **{f"COLLECTOR_MONGO_{name}": "" for name in login}}


def unusable(uri: str, error: Exception) -> ConfigError:
    """The driver rejects this address; why, unless that would show a password."""
    message = str(error).partition("\n")[0]
    if message.startswith("Port contains") and "@" not in uri:
        return ConfigError("mongo_uri is not the address of a MongoDB: its port is not a number")
    why = _HINT if "escaped" in message or _shows_login(message, uri) else message
    return ConfigError(f"mongo_uri is not the address of a MongoDB: {why}")


def _shows_login(message: str, uri: str) -> bool:
    login, found, _ = uri.partition("://")[2].rpartition("@")
    pieces = re.split(r"[:/@?%]", login) + unquote(login).split(":")
    return bool(found) and any(piece in message for piece in pieces if piece)
