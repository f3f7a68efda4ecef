"""The embedded mongod's password: a file in its home that only the home's user can read.

mongod takes the same file as its key file. Whoever knows it can log in as mongod's internal user,
which exists before any other one does: so the first start needs no moment in which a client without
a password is let in (MongoDB's localhost exception, which is turned off).
"""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING

from collector.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

USER = "collector"
INTERNAL_USER, INTERNAL_SOURCE = "__system", "local"
_FORM = re.compile(r"[0-9a-f]{64}")


def password_path(home: Path) -> Path:
    return home / "mongod.password"


def ensure_password(home: Path) -> str:
    """The home's password, made when there is none. ConfigError when others could read it."""
    path = password_path(home)
    if not path.exists():
        draft = home / "mongod.password.draft"
        draft.unlink(missing_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(32))
            os.fsync(file.fileno())
        draft.replace(path)
    if path.stat().st_mode & 0o077:
        raise ConfigError(f"other users can read {path}: chmod 600 it, or delete it for a new one")
    return _read(path)


def with_login(uri: str, home: Path) -> str:
    """The announced address with user and password, as far as this user may read them."""
    try:
        password = _read(password_path(home))
    except FileNotFoundError:
        return uri  # A database that an earlier version runs, without a password.
    except PermissionError:
        raise ConfigError(
            f"{password_path(home)} belongs to another user: "
            "run as that user, or set COLLECTOR_HOME to a directory of your own"
        ) from None
    scheme, _, rest = uri.partition("://")
    return f"{scheme}://{USER}:{password}@{rest}&authSource=admin"


def _read(path: Path) -> str:
    text = path.read_text().strip()
    if _FORM.fullmatch(text) is None:
        raise ConfigError(f"{path} does not hold a password: delete it for a new one")
    return text
