"""Works out a password's key once for all clients of the MongoDB driver.

The driver does so for every client, in thousands of rounds, and hundreds of tests open a few
clients each on the same mongod.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from pymongo.asynchronous import auth

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def remembering_logins() -> Iterator[None]:
    remembering = SimpleNamespace(**{**vars(hashlib), "pbkdf2_hmac": cache(hashlib.pbkdf2_hmac)})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth, "hashlib", remembering)
        patch.setattr(auth, "saslprep", cache(auth.saslprep))
        yield
