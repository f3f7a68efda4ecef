"""How a verb fails: one line on standard error, `E_NAME: what happened`, and the number of it.

A traceback is shown only with `--debug` or COLLECTOR_DEBUG=1.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from dataclasses import dataclass

from collector.errors import CollectorError, InvalidInput, StoreError
from collector.text import printable

UNEXPECTED = 1
"""Python's own exit code after an unexpected error."""


_FIELD = re.compile(r"`(\w+)`")


class UsageMistake(InvalidInput):
    """The arguments are invalid: an unknown value, or values that contradict each other."""

    def __init__(self, reason: str) -> None:
        super().__init__("arguments", "usage", reason)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as the command line reports it."""

    name: str
    message: str
    exit_code: int

    def __str__(self) -> str:
        return f"{self.name}: {printable(' '.join(self.message.split()))}"


def failure(error: BaseException) -> Failure:
    """The message about any error."""
    own = own_error(error)
    if own is not None:
        return Failure(own.exit_name, _words(own), own.exit_code)
    if type(error).__module__.partition(".")[0] in ("pymongo", "bson"):
        return Failure(CollectorError.exit_name, f"MongoDB: {error}", CollectorError.exit_code)
    if isinstance(error, OSError):
        return Failure(StoreError.exit_name, _of_the_system(error), StoreError.exit_code)
    message = f"unexpected {type(error).__name__}: {error} (--debug shows where)"
    return Failure(CollectorError.exit_name, message, UNEXPECTED)


def _words(error: CollectorError) -> str:
    """A field that the error names is an option here: `since` is --since."""
    if not isinstance(error, InvalidInput):
        return str(error)
    return _FIELD.sub(lambda field: f"--{field[1].replace('_', '-')}", str(error))


def own_error(error: BaseException) -> CollectorError | None:
    """The error of ours inside a task group's exception, if that is what went wrong."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(own_error, error.exceptions)), None)
    return error if isinstance(error, CollectorError) else None


def report(error: BaseException) -> int:
    """Prints it on standard error; returns the exit code."""
    shown = failure(error)
    if tracebacks_wanted():
        for line in "".join(traceback.format_exception(error)).splitlines():
            say(line)
    say(str(shown))
    return shown.exit_code


def say(line: str) -> None:
    """Prints a line for users on standard error."""
    print(printable(line), file=sys.stderr)


def tracebacks_wanted() -> bool:
    return os.environ.get("COLLECTOR_DEBUG", "") not in ("", "0")


def want_tracebacks() -> None:
    """For this process and those it starts."""
    os.environ["COLLECTOR_DEBUG"] = "1"


def _of_the_system(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"
