"""Whether the medium of a lake takes an object, gives it back and deletes it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from collector.errors import CollectorError

if TYPE_CHECKING:
    from collector.store.port import Storage

# Nothing that walks exchanges looks at a name that begins with an underscore.
_FOLDER = "_doctor"


def refusal(storage: Storage) -> str | None:
    """Why it cannot be used; None when it can. Leaves nothing behind."""
    path, content = f"{_FOLDER}/{secrets.token_hex(8)}", secrets.token_bytes(64)
    try:
        storage.write_atomic(path, content)
        given = storage.read(path)
        storage.delete(path)
    except CollectorError as error:
        return str(error)
    return None if given == content else f"{path} was read back differently"
