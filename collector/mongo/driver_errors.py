"""What the driver's errors mean to us."""

from __future__ import annotations

import re

from pymongo.errors import (
    BulkWriteError,
    ConnectionFailure,
    ExecutionTimeout,
    OperationFailure,
    PyMongoError,
    WTimeoutError,
)

from collector.errors import DatabaseRefused, DatabaseUnavailable

# Stepping down, shutting down, no primary yet, interrupted, out of time, a cursor lost with its
# server: these mean "not now", not "no".
_PASSING_CODES = frozenset(
    {6, 7, 43, 63, 64, 89, 91, 133, 134, 150, 189, 202, 234, 262, 317, 365}
    | {9001, 10058, 10107, 11600, 11601, 11602, 13388, 13435, 13436}
)
_PASSING_LABELS = ("RetryableWriteError", "TransientTransactionError")
_UNKNOWN_USER, _UNAUTHORIZED, _WRONG_PASSWORD = 11, 13, 18
_REFUSALS = frozenset({_UNKNOWN_USER, _UNAUTHORIZED, _WRONG_PASSWORD})


def as_unavailable(error: PyMongoError) -> DatabaseUnavailable | None:
    """Our error for "not now" and "not allowed"; None when the driver's own is best."""
    if isinstance(error, OperationFailure) and error.code in _REFUSALS:
        details = error.details or {}
        return DatabaseRefused(f"MongoDB refuses this user: {details.get('errmsg', 'no access')}")
    if _means_unreachable(error):
        return DatabaseUnavailable(f"MongoDB cannot be reached: {first_line(error)}")
    return None


def first_line(error: Exception) -> str:
    """What happened, without the driver's settings and its list of servers."""
    return re.split(r",? \(configured timeouts:|, Timeout:|\n", str(error))[0][:300]


def _means_unreachable(error: PyMongoError) -> bool:
    if isinstance(error, ConnectionFailure | WTimeoutError | ExecutionTimeout):
        return True
    if isinstance(error, BulkWriteError):
        # Written, but not confirmed by a majority in time.
        return not error.details.get("writeErrors")
    if any(error.has_error_label(label) for label in _PASSING_LABELS):
        return True
    return isinstance(error, OperationFailure) and error.code in _PASSING_CODES
