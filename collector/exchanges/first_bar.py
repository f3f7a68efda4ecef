"""Finds a market's first bar where the venue does not simply tell, in a handful of requests.

Such a venue answers a request with the bars of a window: a page of bars long, from `since`. So the
search steps through windows, twice as far each time, until one holds bars, and then halves the way
back. It starts with daily bars, whose windows are years long, and goes down a ladder to the bars
that were asked for; below the first rung the answer is nearly always in the first window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    Probe = Callable[[Timeframe, int], Awaitable[int | None]]
    """The first bar of the window at a moment: one request."""
    Page = Callable[[Timeframe], int]
    """How many bars long such a window is."""

BEFORE_ALL_MARKETS_MS = 1_262_304_000_000  # 2010-01-01
_RUNGS = tuple(Timeframe.parse(name) for name in ("1d", "1h", "1m"))


async def first_bar_ms(
    probe: Probe,
    timeframe: Timeframe,
    *,
    served: Collection[str],
    page: Page,
    from_ms: int,
    now_ms: int,
) -> int | None:
    """When the first bar at or after `from_ms` opens; None when there is none."""
    found: int | None = from_ms
    for rung in ladder(timeframe, served):
        if found is None:
            return None
        found = await _first_on_rung(probe, rung, page(rung), rung.floor(found), now_ms)
    return found


def ladder(timeframe: Timeframe, served: Collection[str]) -> list[Timeframe]:
    """The timeframes to search, longest first, ending with the one asked for."""
    above = [rung for rung in _RUNGS if rung > timeframe and rung.name in served]
    return [*above, timeframe]


async def _first_on_rung(
    probe: Probe, rung: Timeframe, page: int, from_ms: int, now_ms: int
) -> int | None:
    width = page * rung.ms
    last = max(0, (now_ms - from_ms) // width)
    empty, step = -1, 0
    tried: set[int] = set()
    while True:
        tried.add(step)
        found = await probe(rung, from_ms + step * width)
        if found is not None:
            break
        if step == last:
            return await _first_of_the_rest(probe, rung, width, from_ms, last, tried)
        empty, step = step, min(last, max(1, 2 * step))
    while step - empty > 1:
        middle = (empty + step) // 2
        earlier = await probe(rung, from_ms + middle * width)
        if earlier is None:
            empty = middle
        else:
            step, found = middle, earlier
    return found


async def _first_of_the_rest(
    probe: Probe, rung: Timeframe, width: int, from_ms: int, last: int, tried: set[int]
) -> int | None:
    """A delisted market may have lived wholly between two steps: looks at every window left."""
    for step in range(last):
        if step not in tried:
            found = await probe(rung, from_ms + step * width)
            if found is not None:
                return found
    return None
