"""How a verb fails: one line on standard error, `E_NAME: what happened`, and the number of it.

A traceback is shown only to those who ask for one, by `--debug` or COLLECTOR_DEBUG=1.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass

from collector.errors import CollectorError, ConfigError, StoreError

UNEXPECTED = 1
"""What Python itself exits with after an error that nobody expected."""

_AUTH_CODES = frozenset({13, 18})


class UsageMistake(CollectorError):
    """What was typed makes no sense: an unknown value, or values that contradict each other."""

    code = "usage"
    exit_name = "E_USAGE"
    exit_code = 2


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the command line tells it."""

    name: str
    message: str
    exit_code: int

    def __str__(self) -> str:
        return f"{self.name}: {' '.join(self.message.split())}"


def failure(error: BaseException) -> Failure:
    """What to say about an error, whoever raised it."""
    own = own_error(error)
    if own is not None:
        return Failure(own.exit_name, str(own), own.exit_code)
    if type(error).__module__.partition(".")[0] in ("pymongo", "bson"):
        return _of_the_driver(error)
    if isinstance(error, OSError):
        return Failure(StoreError.exit_name, _of_the_system(error), StoreError.exit_code)
    said = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
    return Failure(CollectorError.exit_name, said, UNEXPECTED)


def own_error(error: BaseException) -> CollectorError | None:
    """The error of ours inside a task group's exception, if that is what went wrong."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(own_error, error.exceptions)), None)
    return error if isinstance(error, CollectorError) else None


def report(error: BaseException) -> int:
    """Says it on standard error; returns the exit code."""
    told = failure(error)
    if tracebacks_wanted():
        traceback.print_exception(error)
    print(told, file=sys.stderr)
    return told.exit_code


def tracebacks_wanted() -> bool:
    return os.environ.get("COLLECTOR_DEBUG", "") not in ("", "0")


def want_tracebacks() -> None:
    """For this process and those it starts."""
    os.environ["COLLECTOR_DEBUG"] = "1"


def _of_the_driver(error: BaseException) -> Failure:
    from pymongo.errors import ConfigurationError, OperationFailure

    if isinstance(error, ConfigurationError):
        # It may quote the address, and an address may hold a password.
        said = str(error) if "@" not in str(error) else "it is not a MongoDB address"
        return Failure(ConfigError.exit_name, f"COLLECTOR_MONGO_URI: {said}", ConfigError.exit_code)
    if isinstance(error, OperationFailure) and error.code in _AUTH_CODES:
        return Failure("E_AUTH", f"MongoDB refuses this user: {error.details}", 9)
    return Failure(CollectorError.exit_name, f"MongoDB: {error}", CollectorError.exit_code)


def _of_the_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
