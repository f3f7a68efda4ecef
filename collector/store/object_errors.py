"""Errors of an object store, or of the connection to it, by the reaction they need.

Two libraries use it, botocore and pyarrow, and each has its own errors. Messages are made of the
store's own code and message, never of the request: that is where keys are.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConfigNotFound,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from collector.errors import CollectorError, StoreError
from collector.store.port import Swapped, Unavailable, Vanished

if TYPE_CHECKING:
    from collections.abc import Iterator

_NO_KEYS = (NoCredentialsError, PartialCredentialsError, ProfileNotFound, ConfigNotFound)
_PASSING = frozenset(
    {
        "INTERNAL_FAILURE",
        "NETWORK_CONNECTION",
        "REQUEST_TIMEOUT",
        "REQUEST_EXPIRED",
        "SERVICE_UNAVAILABLE",
        "SLOW_DOWN",
        "THROTTLING",
    }
)
"""pyarrow's names for faults that may be temporary."""
_ARROW = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))?")


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Raises the errors of either library about `path` as the store's own errors."""
    try:
        yield
    except ClientError as error:
        raise _of_answer(path, error) from error
    except _NO_KEYS as error:
        raise StoreError(f"{path}: no keys for the object store: set AWS_ACCESS_KEY_ID") from error
    except BotoCoreError as error:
        raise Unavailable(f"{path}: {_line(error)}") from error
    except OSError as error:
        raise _of_arrow(path, error) from error


def _of_answer(path: str, error: ClientError) -> CollectorError:
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    code, message = (str(error.response["Error"].get(key, "")) for key in ("Code", "Message"))
    if status == 404 and code != "NoSuchBucket":
        return Vanished(f"{path} is not there")
    if status in (409, 412):
        return Swapped(f"{path} was replaced by someone else")
    words = dict.fromkeys([str(status), code, _line(message)])
    message = f"{path}: the object store answered {' '.join(words)}".strip()
    return Unavailable(message) if status >= 500 or status in (408, 429) else StoreError(message)


def _of_arrow(path: str, error: OSError) -> CollectorError:
    found = _ARROW.search(str(error))
    if error.errno is not None:
        return Unavailable(f"{path}: {error.strerror or _line(error)}")
    if found is None:
        return StoreError(f"{path}: {_line(error)}")
    message = f"{path}: the object store answered {_line(str(error)[found.start() :])}"
    passing = found[1] in _PASSING or (found[2] or "").startswith("5")
    return Unavailable(message) if passing else StoreError(message)


def _line(error: object) -> str:
    return " ".join(str(error).split())
