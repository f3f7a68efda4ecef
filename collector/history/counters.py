"""What a writer has done since it was made: rebuilds, and trades by what became of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.history.policy import Outcome


@dataclass
class Counters:
    rebuilds: int = 0
    last_rebuild_s: float = 0.0
    """The time the last rebuild of one bucket took."""
    rebuild_s: float = 0.0
    """The time all rebuilds took."""
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    def rebuilt(self, seconds: float, buckets: int = 1) -> None:
        self.rebuilds += buckets
        self.last_rebuild_s = seconds / buckets
        self.rebuild_s += seconds

    def count(self, outcomes: Mapping[Outcome, int]) -> None:
        self.outcomes.update(outcomes)
