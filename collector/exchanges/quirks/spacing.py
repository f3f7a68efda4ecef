"""Requests for one key that keep a distance once the budget is loaded, and keys that go first.

A key is a series as the venue's budget knows it: `XAUUSD:1m`. Load is the share of the fullest of
the venue's windows. From `threshold` on a request waits until the interval of its timeframe has
passed since the last one for the same key; those for `first` never do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def spacing_key(symbol: str, timeframe: str) -> str:
    """`XAUUSD:1m` of `XAU/USD` and `1m`."""
    return f"{symbol.replace('/', '').upper()}:{timeframe}"


def load_level(threshold: float, limit: int) -> int:
    """How much of a window is used when its load reaches the threshold."""
    return math.ceil(round(threshold * limit, 6))


@dataclass(frozen=True, slots=True)
class Spacing:
    """`warn` and `critical` are loads that are reported after a quota has refused a request."""

    intervals_ms: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """By timeframe; requests for others keep no distance."""
    first: frozenset[str] = frozenset()
    """Keys that may use what windows keep in reserve."""
    threshold: float = 0.45
    warn: float = 0.7
    critical: float = 0.9

    def interval_ms(self, key: str | None) -> int:
        return self.intervals_ms.get(key.rpartition(":")[2], 0) if key else 0

    @property
    def longest_ms(self) -> int:
        return max(self.intervals_ms.values(), default=0)

    @classmethod
    def from_document(cls, document: Mapping[str, Any] | None) -> Spacing | None:
        if not document:
            return None
        return cls(
            MappingProxyType({each["tf"]: int(each["ms"]) for each in document["intervals"]}),
            frozenset(document["first"]),
            document["threshold"],
            document["warn"],
            document["critical"],
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "intervals": [{"tf": tf, "ms": ms} for tf, ms in sorted(self.intervals_ms.items())],
            "first": sorted(self.first),
            "threshold": self.threshold,
            "warn": self.warn,
            "critical": self.critical,
        }
