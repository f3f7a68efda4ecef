"""Columns of a bar beyond the ones that every market has: named, optional, all of them floats.

They are defined per exchange, come after the public columns, in the order given here. The
aggregation in a longer bar follows from the end of the name: `_o` is the first, `_h` the greatest,
`_l` the least and `_c` the last value of the window, and anything else is summed up.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    Rule = Literal["first", "max", "min", "last", "sum"]

EXTRA_COLUMNS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"fxcm": ("ask_o", "ask_h", "ask_l", "ask_c")}
)
"""By exchange. Names may be added; files from before then have no values in them."""

_RULES: Mapping[str, Rule] = MappingProxyType({"o": "first", "h": "max", "l": "min", "c": "last"})


def extra_columns(exchange_id: str) -> tuple[str, ...]:
    """The names of an exchange's further columns; most have none."""
    return EXTRA_COLUMNS.get(exchange_id, ())


def rule_of(name: str) -> Rule:
    """How a longer bar gets its value of the column."""
    before, _, end = name.rpartition("_")
    return _RULES.get(end, "sum") if before else "sum"
