"""Further columns of longer bars. Fillers have no value, and unknown values are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.market.extra import rule_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from collector.market.candles import CandleBatch

    Bounds = NDArray[np.intp]
    Floats = NDArray[np.float64]


def extra_of_windows(whole: CandleBatch, starts: Bounds) -> Mapping[str, Floats]:
    """Each further column by the window; `starts` are the first rows of the windows."""
    if not whole.extra:
        return whole.extra
    ends = np.append(starts[1:], len(whole))
    return {
        name: _reduced(rule_of(name), np.where(whole.filler, np.nan, column), starts, ends)
        for name, column in whole.extra.items()
    }


def _reduced(rule: str, column: Floats, starts: Bounds, ends: Bounds) -> Floats:
    known = ~np.isnan(column)
    some = np.logical_or.reduceat(known, starts)
    if rule == "max":
        made = np.fmax.reduceat(column, starts)
    elif rule == "min":
        made = np.fmin.reduceat(column, starts)
    elif rule == "sum":
        made = np.add.reduceat(np.where(known, column, 0.0), starts)
    elif not some.any():
        made = column[starts]
    else:
        at = np.flatnonzero(known)
        place = np.searchsorted(at, starts) if rule == "first" else np.searchsorted(at, ends) - 1
        made = column[at[np.clip(place, 0, len(at) - 1)]]
    return np.where(some, made, np.nan)
