"""Two calendars of one series, laid over each other."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collector.market.candles import BAR, MISSING, NO_TRADE, PARTIAL, CandleBatch
from collector.pipeline.layers import Layer, overlay
from tests.support.bars import BTC, at, span

KINDS = {"b": BAR, "p": PARTIAL, "n": NO_TRADE, "m": MISSING}


def layer(first: int, kinds: str, price: float, source: str = "one") -> Layer:
    """A row a minute; bars close at `price` and the number of their slot, fillers at 1."""
    rows = [
        (at(first + n), 0, 0, 0, price + first + n if kind in "bp" else 1.0, 5.0, math.nan)
        for n, kind in enumerate(kinds)
    ]
    batch = CandleBatch.of(rows)
    batch.gap[:] = [KINDS[kind] for kind in kinds]
    return Layer.by(source, batch, np.full(len(batch), 3, dtype=np.int32))


def told(found: Layer) -> tuple[str, list[float]]:
    """A letter a row, capital where the lower layer gave it, and the closes."""
    names = {code: letter for letter, code in KINDS.items()}
    letters = [
        names[int(gap)].upper() if source == "two" else names[int(gap)]
        for gap, source in zip(found.batch.gap, found.source, strict=True)
    ]
    return "".join(letters), found.batch.c.tolist()


@pytest.mark.parametrize(
    ("upper", "lower", "expected"),
    [
        ("bbb", "bbb", "bbb"),
        ("pnm", "bbb", "BBB"),
        ("bnm", "ppp", "bPP"),
        ("nnm", "mnn", "nnN"),
        ("pp", "pp", "pp"),
        ("bp", "nm", "bp"),
    ],
)
def test_the_better_row_of_each_slot_stays(upper: str, lower: str, expected: str) -> None:
    found = overlay(layer(0, upper, 100), layer(0, lower, 200, "two"), BTC.timeframe)
    assert told(found)[0] == expected


def test_what_lies_before_between_and_behind_counts() -> None:
    found = overlay(layer(5, "bb", 100), layer(0, "bb", 200, "two"), BTC.timeframe)
    letters, closes = told(found)
    assert letters == "BBmmmbb"
    assert closes == [200.0, 201.0, 201.0, 201.0, 201.0, 105.0, 106.0]
    assert found.batch.ts.tolist() == [at(n) for n in range(7)]
    assert found.batch.v.tolist() == [5.0, 5.0, 0.0, 0.0, 0.0, 5.0, 5.0]
    assert found.ver.tolist() == [3, 3, 1, 1, 1, 3, 3]


def test_a_filler_carries_the_last_close_before_it() -> None:
    upper, lower = layer(0, "nbnm", 100), layer(0, "mnbn", 200, "two")
    assert told(overlay(upper, lower, BTC.timeframe)) == ("nbBN", [1.0, 101.0, 202.0, 202.0])
    assert told(overlay(upper, lower, BTC.timeframe, 9.0))[1][0] == 9.0
    nothing = Layer.of_nothing()
    for one, other in ((upper, nothing), (nothing, upper)):
        assert told(overlay(one, other, BTC.timeframe, 9.0))[1] == [9.0, 101.0, 101.0, 101.0]


def test_a_whole_layer_needs_nothing_below_it() -> None:
    assert layer(0, "bbb", 1).is_whole_over(span(0, 3), BTC.timeframe)
    assert not layer(0, "bbb", 1).is_whole_over(span(0, 4), BTC.timeframe)
    assert not layer(0, "bpb", 1).is_whole_over(span(0, 3), BTC.timeframe)
    assert not Layer.of_nothing().is_whole_over(span(0, 3), BTC.timeframe)
