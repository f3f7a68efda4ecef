"""Further columns through a store that is appended to, merged, gathered and repaired at will."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.clock import ManualClock
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.series import Series
from collector.reader import CandleReader
from collector.store.page import Page
from collector.store.repair import repair
from collector.store.store import Store
from tests.support.examples import examples

MINUTE = 60_000
T0 = 1_772_582_400_000  # 2026-03-04 00:00 UTC, a Wednesday
EUR = Series.of("fxcm", "EUR/USD", "1m")

pages = st.tuples(
    st.just("append"),
    st.booleans(),
    st.integers(0, 8),
    st.lists(st.sampled_from([1.0, 2.0, np.nan]), min_size=1, max_size=4),
)
steps = st.lists(
    st.one_of(pages, st.tuples(st.sampled_from(["compact", "gather", "repair"]))),
    min_size=1,
    max_size=10,
)


@settings(max_examples=examples(25), deadline=None)
@given(steps=steps)
def test_the_last_values_are_read_whatever_was_done_to_the_files(
    steps: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as root:
        store = Store(root, clock=ManualClock(wall_ms=T0 + 10**8))
        known: dict[int, float] = {}
        then: dict[int, float] = {}
        moment = T0
        for step in steps:
            if step[0] == "compact":
                store.compact(EUR)
            elif step[0] == "gather":
                store.gather("fxcm")
            elif step[0] == "repair":
                assert repair(store, "fxcm", "EUR/USD") == []
            else:
                _, grouped, first, asks = step
                moment += 1_000
                then = dict(known)
                span = Interval(T0 + first * MINUTE, T0 + (first + len(asks)) * MINUTE)
                ts = np.arange(span.from_ms, span.to_ms, MINUTE)
                batch = CandleBatch.of([(each, 1.0, 2.0, 0.5, 1.5, 1.0) for each in ts.tolist()])
                batch = batch.with_extra({"ask_c": np.array(asks)})
                page = Page.of(EUR, batch, span, fence=1, known_at=moment)
                if grouped:
                    store.append_group([page])
                else:
                    store.append_page(EUR, batch, span, fence=1, known_at=moment)
                known |= dict(zip(ts.tolist(), asks, strict=True))
        if not known:
            return
        assert _read(store) == _plain(known)
        if then:
            assert _read(store, moment - 1) == _plain(then)


def _plain(values: dict[int, float]) -> dict[int, float | None]:
    return {ts: None if np.isnan(value) else value for ts, value in sorted(values.items())}


def _read(store: Store, as_of: int | None = None) -> dict[int, float | None]:
    reader = CandleReader("EUR/USD", "1m", "fxcm", root=store)
    table = reader.arrow(gaps="omit", as_of=as_of)
    return dict(zip(table["ts"].to_pylist(), table["ask_c"].to_pylist(), strict=True))
