"""Whether what is stored of a series is what happened on the simulated exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.compute as pc

from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.series import Series
    from collector.simulated.truth import Truth

COLUMNS = {"ts": "ts", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume"}


class WrongBars(NamedTuple):
    """How many bars of a range are not as they happened."""

    missing: int = 0
    surplus: int = 0
    """Stored twice, or never made by the exchange."""
    different: int = 0


def wrong_bars(
    root: Path | str, series: Series, truth: Truth, from_ms: int, until_ms: int
) -> WrongBars:
    """What is wrong with the bars of [from_ms, until_ms); a bar before them is one too many."""
    table = Store(root).rows(series, 0, until_ms)
    table = table.filter(pc.invert(table.column("is_gap")))
    true = truth.bars(series.symbol, series.timeframe.name, from_ms, until_ms).columns()
    stored = {theirs: table.column(ours).to_numpy() for ours, theirs in COLUMNS.items()}
    both, of_stored, of_true = np.intersect1d(stored["ts"], true["ts"], return_indices=True)
    differs = np.zeros(len(both), dtype=np.bool_)
    for name, column in stored.items():
        differs |= column[of_stored] != true[name][of_true]
    return WrongBars(len(true["ts"]) - len(both), len(table) - len(both), int(differs.sum()))


def check_stored(
    root: Path | str, series: Series, truth: Truth, from_ms: int, until_ms: int
) -> None:
    """No bar of [from_ms, until_ms) lost, none twice, none wrong, and none before them."""
    wrong = wrong_bars(root, series, truth, from_ms, until_ms)
    assert wrong == WrongBars(), f"{series}: {wrong}"
