"""Moments as people and programs write them, in epoch ms. One parser for Python, REST and CLI.

The size of a number gives its unit: 13 digits are milliseconds (12 before 2001-09-09), 10 digits
are seconds, 8 digits are a date such as 20240102, and 0 is 1970 in every unit. Nothing else is
guessed: a number that fits none of them is refused, because in the wrong unit it would be a day in
1970.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime

import numpy as np

Moment = int | float | str | date | datetime | np.datetime64

EARLIEST_MS, LATEST_MS = 0, 253_402_300_799_999
"""1970 to 9999."""

_FORMS = (
    "2025-01-01, 2025-01-01T12:00Z, 20250101, epoch milliseconds (13 digits) "
    "or epoch seconds (10 digits)"
)


def epoch_ms(moment: Moment) -> int:
    """The moment in epoch ms; UTC unless it has another offset.

    Raises ValueError, with the forms that are understood, for anything else.
    """
    found = _read(moment)
    if found is None:
        raise ValueError(f"{_shown(moment)} is no moment: write {_FORMS}")
    if not EARLIEST_MS <= found <= LATEST_MS:
        raise ValueError(f"{_shown(moment)} is not between 1970 and 9999")
    return found


def moment_at(ms: int) -> np.datetime64:
    """A moment of known unit: `epoch_ms` reads back these milliseconds, whatever their size."""
    return np.datetime64(ms, "ms")


def _read(moment: object) -> int | None:
    if isinstance(moment, bool | np.bool_):
        return None
    if isinstance(moment, np.datetime64):
        return None if np.isnat(moment) else int(moment.astype("datetime64[ms]").astype(np.int64))
    if isinstance(moment, int | np.integer):
        return _of_number(int(moment), 0.0)
    if isinstance(moment, float | np.floating):
        return _of_float(float(moment))
    if isinstance(moment, str):
        return _of_text(moment.strip())
    # A datetime is a date as well; pandas' NaT passes for one and equals nothing, not even itself.
    if not isinstance(moment, date) or moment != moment:
        return None
    return _of_date(moment)


def _of_float(moment: float) -> int | None:
    """As time.time() returns it, or milliseconds that went through JSON or a float column."""
    if not math.isfinite(moment):
        return None
    whole = math.floor(moment)
    return _of_number(whole, moment - whole)


def _of_number(number: int, fraction: float) -> int | None:
    if number < 0:
        return None
    digits = len(str(number)) if number < LATEST_MS else math.inf
    if digits in (12, 13) or (number == 0 and not fraction):
        return number + round(fraction)
    if digits == 10:
        return number * 1000 + round(fraction * 1000)
    return _of_iso(str(number)) if digits == 8 and not fraction else None


def _of_text(text: str) -> int | None:
    if text.isascii() and text.isdigit():
        # Nothing longer is a moment, and Python refuses to read thousands of digits.
        return _of_number(int(text), 0.0) if len(text) <= 20 else None
    return _of_iso(text)


def _of_iso(text: str) -> int | None:
    try:
        return _of_date(datetime.fromisoformat(text))
    except ValueError:
        return None


def _of_date(moment: date) -> int:
    if not isinstance(moment, datetime):
        moment = datetime(moment.year, moment.month, moment.day)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def _shown(moment: object) -> str:
    text = repr(moment) if isinstance(moment, str) else str(moment)
    return text if len(text) <= 60 else f"{text[:60]}..."
