"""What all faults share: which requests they affect and how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import ConfigDict, Field

from collector.durations import MINUTE_MS
from collector.simulated.noise import below, key

if TYPE_CHECKING:
    from collections.abc import Hashable

    from collector.simulated.noise import Flags, Ints
    from collector.simulated.request import PublicRequest

Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(ge=0)]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Strike:
    """One strike of a fault: the request it hits, a die in [0, 1), the exchange's seed, and what
    the fault remembers from earlier strikes."""

    ask: PublicRequest
    roll: float = 0.0
    seed: int = 0
    seen: set[Hashable] = field(default_factory=set)

    def first_time(self, thing: Hashable) -> bool:
        """True once for each thing."""
        if thing in self.seen:
            return False
        self.seen.add(thing)
        return True


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that is wrong with the exchange, for one market or for all."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    kind: str
    symbol: str | None = None

    def concerns(self, venue_id: str | None) -> bool:
        return self.symbol is None or self.symbol.replace("/", "") == venue_id


@dataclass(frozen=True, kw_only=True)
class RequestFault(Fault):
    """A fault that strikes requests: each with `probability`, the next `count` it strikes, and for
    `seconds` after it was switched on."""

    endpoint: str | None = None
    probability: Share = 1.0
    count: Count | None = None
    seconds: Amount | None = None


@dataclass(frozen=True, kw_only=True)
class Pick:
    """Which bars of a market: those that open inside `spans` (anywhere when there are none), and
    of these the fixed `ratio`."""

    ratio: Share = 1.0
    spans: tuple[Span, ...] = ()

    def mask(self, open_ms: Ints, *name: object) -> Flags:
        """True for every bar that is picked; always the same bars for the same name."""
        chosen = below(open_ms // MINUTE_MS, key(*name), self.ratio)
        if not self.spans:
            return chosen
        inside = np.zeros(len(open_ms), dtype=np.bool_)
        for start, end in self.spans:
            inside |= (open_ms >= start) & (open_ms < end)
        return chosen & inside
