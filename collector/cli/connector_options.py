"""From the options of `collector connector set` to the changes that they mean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from collector.cli.failures import UsageMistake

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PERIOD = re.compile(r"([0-9]{1,11})(ms|s|m|h|d)?")
_LENGTHS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_WINDOW = re.compile(r"([0-9]{1,10})(?::(requests|weight))?/(.+)")
_NONE = "none"


def changes_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, by the names and in the shapes of the REST API. Raises UsageMistake."""
    readers = {
        "rate_limit_period_ms": lambda text: period_ms(text, "--period"),
        "windows": windows,
        "max_concurrent_jobs": _count_or_none,
        "circuit": _circuit,
    }
    return {
        name: readers[name](value) if name in readers else value
        for name, value in given.items()
        if value is not None and value != []
    }


def period_ms(text: str, option: str) -> int:
    """`1s`, `500ms`, `5m`, or milliseconds."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        raise UsageMistake(f"{option} {text!r} is not like 1s, 500ms or 5m")
    return int(match[1]) * _LENGTHS[match[2] or ""]


def windows(texts: Sequence[str]) -> list[dict[str, Any]]:
    """`6000:weight/1m` each; `none` alone for no further window."""
    if list(texts) == [_NONE]:
        return []
    return [_window(text) for text in texts]


def _window(text: str) -> dict[str, Any]:
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        raise UsageMistake(f"--window {text!r} is not like 6000/1m or 6000:weight/1m")
    unit = match[2] or "requests"
    return {"unit": unit, "limit": int(match[1]), "period_ms": period_ms(match[3], "--window")}


def _count_or_none(text: str) -> int | None:
    if text == _NONE:
        return None
    if not (text.isascii() and text.isdigit()):
        raise UsageMistake(f"--max-concurrent-jobs {text!r} is neither a number nor 'none'")
    return int(text)


def _circuit(texts: Sequence[str]) -> dict[str, Any]:
    pairs = [text.partition("=") for text in texts]
    for name, equals, _ in pairs:
        if not equals:
            raise UsageMistake(f"--circuit {name!r} is not like circuit_min_closed_sec=120")
    return {name.strip(): _value(text.strip()) for name, _, text in pairs}


def _value(text: str) -> Any:
    """A flag, a number, or the text as it is: then the setting itself is refused."""
    known = {"true": True, "false": False, _NONE: None}
    if text in known:
        return known[text]
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
