"""Which calendar a market uses.

It is part of the vocabulary, like the day on which weeks open, so that stored bars can be read
without the exchange's provider. A provider names its calendar too, and a test compares the two.

Overrides of the settings belong to the process: loading settings sets them, before anything else.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from collector.market.calendar.calendar import ALWAYS_OPEN
from collector.market.calendar.fx import FX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.market.calendar.calendar import Calendar
    from collector.market.calendar.sessions import Override, Sessions

SESSIONS: Mapping[str, Sessions] = MappingProxyType({"fxcm": FX})
"""Exchanges that close."""


_overrides: dict[str, tuple[Override, ...]] = {}


def set_overrides(overrides: Mapping[str, Sequence[Override]]) -> None:
    """By exchange, what this process adds to its calendar, in place of what was set before."""
    _overrides.clear()
    _overrides.update({exchange_id: tuple(each) for exchange_id, each in overrides.items()})


def calendar_of(exchange_id: str, symbol: str = "") -> Calendar:  # noqa: ARG001 - none differ yet
    """The calendar of a market; without a symbol, the one of most markets of the exchange."""
    sessions = SESSIONS.get(exchange_id)
    if sessions is None:
        return ALWAYS_OPEN
    given = _overrides.get(exchange_id)
    return _overridden(sessions, given) if given else sessions


@cache
def _overridden(sessions: Sessions, overrides: tuple[Override, ...]) -> Sessions:
    return sessions.with_overrides(overrides)
