"""A store that lives through any order of pages, revisions, compactions, gatherings and deaths.

The model is a list of sightings and a set of covered slots. A write that died counts iff its file
had been renamed into place by then: every acknowledged write is among those.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import event
from hypothesis import strategies as st

from collector.clock import ManualClock
from collector.market.candles import CandleBatch
from collector.market.timeframe import Timeframe
from collector.pipeline.ladder import Graded, Ladder
from collector.reader import CandleReader
from collector.store.copies import Copies
from collector.store.page import Page
from collector.store.port import StorageFault
from collector.store.segment import SEGMENT_SCHEMA
from tests.support.bars import BTC, ETH, MINUTE, at, bars, span

if TYPE_CHECKING:
    from collector.market.series import Series
    from tests.support.lakes import Lake

SLOTS = 12
WINDOW = 3
"""Slots of a row group here, so that a handful of bars is a file of several."""
SERIES = (BTC, ETH)
FIVE = Timeframe.parse("5m")
COPIES = Copies((FIVE,), tail_days=1)


class Killed(BaseException):
    """Not an Exception, so that nothing tidies up on its way: as after kill -9."""


@dataclass
class Death:
    """Ends the process at the n-th fault point it passes. Remembers which files got their name."""

    after: int | None = None
    placed: set[str] = field(default_factory=set)
    point: StorageFault | None = None
    """Where it ended last. Files are written in threads, too, where hypothesis notes no events."""

    def __call__(self, point: StorageFault, path: str) -> None:
        if point is StorageFault.AFTER_RENAME:
            self.placed.add(path)
        if self.after is not None:
            self.after -= 1
            if self.after < 0:
                self.point = point
                raise Killed


@dataclass
class Model:
    """What was stored about one series."""

    sightings: list[tuple[int, int, float]] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)

    def tell(self, page: Page) -> None:
        slots = ((page.batch.ts - at(0)) // MINUTE).tolist()
        prices = zip(slots, page.batch.o.tolist(), strict=True)
        self.sightings += [(slot, page.known_at, price) for slot, price in prices]
        for each in page.covered:
            ends = ((ts - at(0)) // MINUTE for ts in (each.from_ms, each.to_ms))
            self.settled |= set(range(*ends))

    def rows(self, as_of: int | None = None) -> list[tuple[Any, ...]]:
        """Slot, price, version, gap reason: of every slot from the first bar to the end."""
        by_slot: dict[int, list[tuple[int, float]]] = {}
        for slot, known, price in self.sightings:
            if as_of is None or known <= as_of:
                by_slot.setdefault(slot, []).append((known, price))
        if not by_slot:
            return []
        end = max(by_slot) + 1 if as_of is not None else max(self.settled) + 1
        had_bar = {slot for slot, _, _ in self.sightings}
        told: list[tuple[Any, ...]] = []
        close = 0.0
        for slot in range(min(by_slot), end):
            prices = [price for _, price in sorted(by_slot.get(slot, []))]
            if prices:
                changes = sum(a != b for a, b in itertools.pairwise(prices))
                told.append((slot, prices[-1], changes + 1, None))
                close = prices[-1] + 1.0
            else:
                settled = slot in self.settled and slot not in had_bar
                told.append((slot, close, 1, "no_trade" if settled else "missing"))
        return told

    def ledger(self) -> list[tuple[int, int, int]]:
        runs: list[list[int]] = []
        for slot in sorted(self.settled):
            if runs and runs[-1][1] == slot:
                runs[-1][1] = slot + 1
            else:
                runs.append([slot, slot + 1])
        held = {slot for slot, _, _ in self.sightings}
        return [(at(a), at(b), len(held & set(range(a, b)))) for a, b in runs]


stretches = st.tuples(st.integers(0, SLOTS - 1), st.integers(1, SLOTS)).map(
    lambda drawn: (drawn[0], min(SLOTS, drawn[0] + drawn[1]))
)
price_or_hole = st.sampled_from([None, 10.0, 20.0])
answers = st.tuples(
    st.sampled_from(SERIES),
    stretches,
    st.lists(price_or_hole, min_size=SLOTS, max_size=SLOTS),
)
"""A series, the requested range, and what the venue has there."""


def dying(most: int) -> st.SearchStrategy[int | None]:
    return st.integers(-most // 2, most).map(lambda n: n if n >= 0 else None)


steps = st.one_of(
    st.tuples(st.just("page"), answers, dying(7)),
    st.tuples(st.just("group"), st.lists(answers, min_size=1, max_size=3), dying(7)),
    st.tuples(st.just("compact"), st.sampled_from(SERIES), dying(40)),
    st.tuples(st.just("compact"), st.sampled_from(SERIES), st.none()),
    st.tuples(st.just("sweep"), st.none(), dying(3)),
    st.tuples(st.just("gather"), st.none(), dying(12)),
)
stories = st.lists(steps, min_size=3, max_size=12)


class World:
    """A store in a lake where processes die, and the model of what it must return."""

    def __init__(self, lake: Lake, moments: list[int], copies: Copies = COPIES) -> None:
        self.lake = lake
        self._copies = copies
        self.models = {series: Model() for series in SERIES}
        self._moments = iter(moments)
        self._clock = ManualClock()
        self.restart()

    def restart(self) -> None:
        self.death = Death()
        self.store = self.lake.store(self.death, clock=self._clock, copies=self._copies)

    def run(self, kind: str, what: Any, dies_after: int | None) -> None:
        self.death.after = dies_after
        self.death.placed.clear()
        try:
            getattr(self, kind)(what)
        except Killed:
            event(f"died {self.death.point}")
            self.restart()
        self.death.after = None

    def page(self, answer: Any) -> None:
        page = self._page(answer)
        try:
            self.store.append_page(
                page.series, page.batch, page.covered, fence=1, known_at=page.known_at
            )
        finally:
            if self.death.placed:
                self.models[page.series].tell(page)

    def group(self, told: list[Any]) -> None:
        pages = [self._page(answer) for answer in told]
        try:
            self.store.append_group(pages)
        finally:
            if self.death.placed:
                for page in pages:
                    self.models[page.series].tell(page)

    def compact(self, series: Series) -> None:
        self.store.compact(series)

    def sweep(self, _: None) -> None:
        self.store.sweep("binance")

    def gather(self, _: None) -> None:
        """At an hour of its own: what the one before stood for goes."""
        self._clock.advance(3_600)
        self.store.gather("binance")

    def _page(self, answer: Any) -> Page:
        series, (first, end), prices = answer
        held = {slot: p for slot, p in enumerate(prices) if p and first <= slot < end}
        batch = bars(held) if held else CandleBatch.empty()
        return Page.of(series, batch, span(first, end), fence=1, known_at=next(self._moments))

    def check(self, *, versions: bool) -> None:
        for series, model in self.models.items():
            keep = slice(None) if versions else [0, 1, 3]
            expected = picked(model.rows(), keep)
            assert picked(self.told(series), keep) == expected
            for first, end in ((2, 5), (5, 20)):
                some = [row for row in expected if first <= row[0] < end]
                assert picked(self.told(series, None, first, end), keep) == some
            ledger = [(c.from_ms, c.to_ms, c.bars) for c in self.store.coverage(series)]
            assert ledger == model.ledger()
            self.check_longer_bars(series)
            if versions:
                for moment in sorted({known for _, known, _ in model.sightings})[::4]:
                    assert self.told(series, moment) == model.rows(moment)

    def check_longer_bars(self, series: Series) -> None:
        """Whatever state their file is in, they are what the minutes make."""
        reader = CandleReader(series.symbol, "5m", series.exchange_id, self.store)
        minutes = self.store.rows(series, 0, 2**52)
        if not reader.is_stored():
            assert not self.store.holds(series)
            return
        whole = Graded(CandleBatch.from_arrow(minutes), minutes["ver"].to_numpy())
        made = Ladder(series.timeframe, [FIVE]).climb(whole)[FIVE]
        assert reader.arrow().equals(made.batch.to_arrow(series.exchange_id, made.ver))

    def told(
        self, series: Series, as_of: int | None = None, first: int = -5, end: int = SLOTS + 5
    ) -> list[tuple[Any, ...]]:
        table = self.store.rows(
            series, at(first), at(end), as_of=as_of, columns=SEGMENT_SCHEMA.names
        )
        slots = ((table["ts"].to_numpy() - at(0)) // MINUTE).tolist()
        columns = (table[name].to_pylist() for name in ("o", "ver", "gap_reason"))
        return list(zip(slots, *columns, strict=True))


def picked(rows: list[tuple[Any, ...]], keep: Any) -> list[Any]:
    return rows if isinstance(keep, slice) else [[row[at] for at in keep] for row in rows]


def lived_through(world: World, story: list[Any], *, versions: bool) -> None:
    for kind, what, dies_after in story:
        world.run(kind, what, dies_after)
    world.check(versions=versions)
    for series in SERIES:
        world.store.compact(series)
    world.store.sweep("binance")
    world.restart()
    world.check(versions=versions)
    for series in SERIES:
        assert world.store.compact(series) is None
    nothing_left_over(world.lake)


def nothing_left_over(lake: Lake) -> None:
    """Every part is merged and gone, and every sealed file is whole, ascending and unique."""
    for path in lake.everything():
        assert "/parts/" not in path
        if path.endswith(".parquet") and "/versions/" not in path:
            ts = lake.table(path)["ts"].to_numpy()
            step = 5 * MINUTE if path.endswith("/5m.parquet") else MINUTE
            assert (np.diff(ts) == step).all()
