"""What an object store, or the way to it, has to complain about, by the reaction it asks for.

Two libraries speak to it, botocore and pyarrow, and each has its own words. Lines are made of the
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
"""pyarrow's names for what may be gone the next time."""
_ARROW = re.compile(r"AWS Error (\w+)(?: \(HTTP status (\d+)\))?")


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Errors of either library about `path`, in the store's own words."""
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
    told = f"{path}: the object store says {' '.join(words)}".strip()
    return Unavailable(told) if status >= 500 or status in (408, 429) else StoreError(told)


def _of_arrow(path: str, error: OSError) -> CollectorError:
    found = _ARROW.search(str(error))
    if found is None or error.errno is not None:
        return StoreError(f"{path}: {error.strerror or _line(error)}")
    told = f"{path}: the object store says {_line(str(error)[found.start() :])}"
    passing = found[1] in _PASSING or (found[2] or "").startswith("5")
    return Unavailable(told) if passing else StoreError(told)


def _line(error: object) -> str:
    return " ".join(str(error).split())
