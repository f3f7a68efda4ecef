"""What a look at one area found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but not as well as it should; or it passes by itself; or it was not checked."""
    PROBLEM = "problem"
    """Something does not work until a person acts."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at, in one line, and what to do about it."""

    level: Level
    area: str
    message: str
    help: str | None = None


ok = partial(Finding, Level.OK)
warning = partial(Finding, Level.WARNING)
problem = partial(Finding, Level.PROBLEM)
