"""What a look at a series costs when thousands of series are collected live and nobody merged yet.

Every minute makes one group part with a bar of every series. A worker gathers them first, and then
looks at each series: the figures compare an hour of parts with a quarter of an hour. In the same
process, as a worker does it, with sealed files for none of the series.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from collector.clock import ManualClock
from collector.market.interval import Interval
from collector.market.series import Series
from collector.store.gathering import KEPT_MS
from collector.store.page import Page
from collector.store.store import Store
from tests.bench.harness import Bench, Figure, in_turn, ratio
from tests.bench.lake_bars import MINUTE_MS, START_MS, minutes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FEW, MANY = 15, 60
"""Minutes of parts."""
AT_MOST = 1.5
LOOKS = 200


async def run(bench: Bench) -> list[Figure]:
    count = bench.pick(10_000, 1_000)
    series = [Series.of("simulated", f"S{number:05d}/USDT", "1m") for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="collector-parts-") as folder:
        few = _lake(Path(folder, "few"), series, FEW)
        many = _lake(Path(folder, "many"), series, MANY)
        gathered = {name: _gathered(lake) for name, lake in (("few", few), ("many", many))}
        figures, rows = [], []
        for name, work, times in (
            ("a look, listing included", _looks(listed=False), LOOKS),
            ("a look of a scan", _looks(listed=True), LOOKS),
            ("a read of the last quarter", _reads, LOOKS),
            (f"a gap scan of {count:,} series", _scans, 1),
        ):
            samples = await in_turn(
                {"few": work(few, series), "many": work(many, series)},
                bench.pick(9, 5),
                settled=lambda so_far: ratio(so_far, "many", "few") <= AT_MOST,
            )
            rows.append([name, *(1000 * min(samples[each]) / times for each in ("few", "many"))])
            flat = ratio(samples, "many", "few")
            title = f"lake.parts, {name}: {MANY} / {FEW} minutes"
            figures.append(Figure(title, flat, at_most=AT_MOST))
    rows.append(["gathering first", 1000 * gathered["few"], 1000 * gathered["many"]])
    title = f"{count:,} series, parts of {FEW} and {MANY} minutes, ms"
    bench.show(title, ["", f"{FEW}", f"{MANY}"], rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*figures, Figure("lake.parts, peak of this process", peak, unit=" MB")]


def _lake(root: Path, series: list[Series], parts: int) -> Store:
    store, bars = Store(root), minutes(1)
    for minute in range(parts):
        batch = bars.take(slice(minute, minute + 1))
        opened = START_MS + minute * MINUTE_MS
        covered, known_at = Interval(opened, opened + MINUTE_MS), opened + MINUTE_MS + 1
        store.append_group(
            [Page.of(each, batch, covered, fence=1, known_at=known_at) for each in series]
        )
    return Store(root, clock=ManualClock())


def _gathered(store: Store) -> float:
    """The parts that were put together are deleted by the next gathering, some time later."""
    started = time.perf_counter()
    store.gather("simulated")
    took = time.perf_counter() - started
    assert isinstance(store._clock, ManualClock)
    store._clock.advance(KEPT_MS / 1000 + 1)
    store.gather("simulated")
    return took


def _looks(*, listed: bool) -> Callable[[Store, list[Series]], Callable[[], Awaitable[float]]]:
    def work(store: Store, series: list[Series]) -> Callable[[], Awaitable[float]]:
        async def seconds() -> float:
            started = time.perf_counter()
            for each in series[:: max(1, len(series) // LOOKS)][:LOOKS]:
                store.covered(each, listed=listed)
            return time.perf_counter() - started

        return seconds

    return work


def _reads(store: Store, series: list[Series]) -> Callable[[], Awaitable[float]]:
    async def seconds() -> float:
        started = time.perf_counter()
        for each in series[:: max(1, len(series) // LOOKS)][:LOOKS]:
            store.rows(each, START_MS, START_MS + FEW * MINUTE_MS)
        return time.perf_counter() - started

    return seconds


def _scans(store: Store, series: list[Series]) -> Callable[[], Awaitable[float]]:
    """As a gap scan looks at the ledgers: one listing, then every series."""

    async def seconds() -> float:
        started = time.perf_counter()
        found = store.series("simulated")
        store.list_parts("simulated")
        for each in found:
            store.covered(each, listed=True)
        assert len(found) == len(series)
        return time.perf_counter() - started

    return seconds
