"""Faults of the history itself, the same for every request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from collector.durations import MINUTE_MS
from collector.simulated import bars as row
from collector.simulated.faults.record import Amount, Fault, Pick

if TYPE_CHECKING:
    from collector.simulated.bars import Bars


@dataclass(frozen=True, kw_only=True)
class NoTrade(Fault, Pick):
    """There are no trades in these minutes: no bar exists, not in the truth either."""

    kind: Literal["no_trade"] = "no_trade"

    def apply(self, minutes: Bars, venue_id: str, seed: int) -> Bars:
        return minutes.keep(~self.mask(minutes.open_ms, seed, self.kind, venue_id))


@dataclass(frozen=True, kw_only=True)
class Missing(Fault, Pick):
    """The exchange has lost these bars for good: the truth has them, no answer ever does."""

    kind: Literal["missing"] = "missing"

    def apply(self, bars: Bars, venue_id: str, seed: int) -> Bars:
        return bars.keep(~self.mask(bars.open_ms, seed, self.kind, venue_id))


@dataclass(frozen=True, kw_only=True)
class Revision(Fault, Pick):
    """These bars are corrected `after_ms` after their close; until then another close and a smaller
    volume are shown. The truth gives the final values."""

    kind: Literal["revision"] = "revision"
    after_ms: Amount = 30_000

    def apply(self, minutes: Bars, venue_id: str, seed: int, now_ms: int) -> Bars:
        fresh = minutes.open_ms + MINUTE_MS + int(self.after_ms) > now_ms
        early = fresh & self.mask(minutes.open_ms, seed, self.kind, venue_id)
        if not early.any():
            return minutes
        table = minutes.table.copy()
        part = table[:, early]
        part[row.CLOSE] += np.where(part[row.CLOSE] > part[row.LOW], -1, 1)
        np.minimum(part[row.CLOSE], part[row.HIGH], out=part[row.CLOSE])
        part[row.VOLUME] -= part[row.VOLUME] // 8
        part[row.TAKER] -= part[row.TAKER] // 8
        usual = part[row.OPEN : row.CLOSE + 1].sum(axis=0) >> 2
        part[row.QUOTE] = part[row.VOLUME] * usual
        part[row.TAKER_QUOTE] = part[row.TAKER] * usual
        table[:, early] = part
        return replace(minutes, table=table)
