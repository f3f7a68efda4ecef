"""Whether what is stored of a series is what happened on the simulated exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from collector.market.series import Series
    from collector.simulated.truth import Truth

COLUMNS = {"ts": "ts", "o": "open", "h": "high", "l": "low", "c": "close", "v": "volume"}


def check_stored(
    root: Path | str, series: Series, truth: Truth, from_ms: int, until_ms: int
) -> None:
    """No bar of [from_ms, until_ms) lost, none twice, none wrong, and none before them."""
    table = Store(root).rows(series, 0, until_ms)
    assert not table.column("is_gap").to_numpy().any(), f"{series}: bars are missing"
    true = truth.bars(series.symbol, series.timeframe.name, from_ms, until_ms).columns()
    for ours, theirs in COLUMNS.items():
        stored, expected = table.column(ours).to_numpy(), true[theirs]
        assert len(stored) == len(expected), f"{series}: {len(stored)} bars, {len(expected)} true"
        wrong = np.flatnonzero(stored != expected)
        assert not len(wrong), f"{series}: {ours} differs {len(wrong)} times, first at {wrong[0]}"
