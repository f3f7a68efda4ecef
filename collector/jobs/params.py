"""The parameters of a job beside its series: one frozen record a type, each field with a default.

Stored params may hold more than a record defines, such as an operator's notes or fields of a newer
program; a handler reads only its own. The metadata of a field holds its description, for schemas
and help.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


def _means(description: str) -> dict[str, str]:
    return {"description": description}


@dataclass(frozen=True, slots=True)
class Params:
    """Parameters of every job type."""

    priority: bool = field(
        default=False,
        metadata=_means(
            "its requests may use what a window keeps in reserve; gap jobs may unless this is false"
        ),
    )

    @classmethod
    def lists(cls) -> frozenset[str]:
        """The names of those that are lists of short strings."""
        return frozenset(each.name for each in fields(cls) if isinstance(each.default, tuple))

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """The fields that are given and known; the others keep their defaults."""
        return cls(**{each.name: given[each.name] for each in fields(cls) if each.name in given})


@dataclass(frozen=True, slots=True)
class TradesParams(Params):
    history: str | None = field(
        default=None, metadata=_means("a network of trade history that the trades go to as well")
    )


@dataclass(frozen=True, slots=True)
class GapScanParams(Params):
    any_age: bool = field(
        default=False,
        metadata=_means("look at all of the history, not at `quality.gap_recovery_days` alone"),
    )


@dataclass(frozen=True, slots=True)
class PriceStreamParams(Params):
    symbols: tuple[str, ...] = field(
        default=(), metadata=_means("whose prices; none means those of the active series")
    )
    price_snap_interval_seconds: float | None = field(
        default=None,
        metadata=_means("seconds between two snapshots, instead of the settings"),
    )
    watch_bars: bool = field(
        default=True,
        metadata=_means("ask for a bar as soon as the stream shows that it has closed"),
    )
