"""A connector in words, and as JSON for scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.cli.moments import shown_age
from collector.durations import shown_span

if TYPE_CHECKING:
    from collections.abc import Mapping

    Shown = Mapping[str, Any]

_BESIDE = frozenset({"stop", "jobs", "lag", "jobs_removed"})


def connector_facts(connector: Shown) -> dict[str, Any]:
    """The fields of the REST API; `stopped` says why nothing is sent, and until when."""
    own = {name: value for name, value in connector.items() if name not in _BESIDE}
    return {**own, "stopped": connector["stop"]}


def status_words(connector: Shown, now_ms: int) -> str:
    """`active`, or what stops it and for how long."""
    stop = connector["stop"]
    if stop is None:
        return "active"
    why = connector["blocked_reason"] if stop["reason"] == "blocked" else None
    words = f"{stop['reason']} ({why})" if why else str(stop["reason"])
    return f"{words}, ends {shown_age(stop['until'], now_ms)}" if stop["until"] else words


def token_words(connector: Shown) -> str:
    """How many were granted, denied, and counted once more because their requests were late."""
    names = ("granted", "denied", "charged")
    return ", ".join(f"{connector[f'{name}_total']:,} {name}" for name in names)


def used_words(connector: Shown) -> str:
    """How full its fullest window is."""
    window = max(connector["usage"], key=lambda each: each["used"] / each["limit"])
    share = window["used"] / window["limit"]
    return f"{window['used']:,}/{window['limit']:,} {window['unit']} ({share:.0%})"


def budget_words(connector: Shown) -> str:
    return ", ".join(_window_words(window) for window in connector["usage"])


def _window_words(window: Shown) -> str:
    period_ms = window["period_ms"]
    length = f"{period_ms} ms" if period_ms % 1000 else shown_span(period_ms)
    return f"{window['limit']:,} {window['unit']} / {length}"
