"""Finds a market's first bar where the venue does not report it, in a handful of requests.

Such a venue answers a request with the bars of a window: a page of bars long, from `since`. So the
search steps through windows, twice as far each time, until one holds bars, and then bisects
backwards. It starts with daily bars, whose windows are years long, and goes down a ladder to the
requested bars; below the first rung the answer is nearly always in the first window.

Single answers are checked. A listing date is a hint: it is checked first, and so is the time right
before it. The window before the one where bars begin is requested once more, because venues answer
empty when they are busy; so is the part of a window before its first row, because a venue may have
left out the oldest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    Page = Callable[[Timeframe], int]
    """How many bars long a window is."""

BEFORE_ALL_MARKETS_MS = 1_262_304_000_000  # 2010-01-01
_RUNGS = tuple(Timeframe.parse(name) for name in ("1d", "1h", "1m"))


class Probe(Protocol):
    """The first bar of a window of this many bars. `again`: ignores earlier answers."""

    async def __call__(
        self, rung: Timeframe, since_ms: int, bars: int, *, again: bool = False
    ) -> int | None: ...


@dataclass(frozen=True, slots=True)
class FirstBar:
    """The search for one market's first bar, from `from_ms` on."""

    probe: Probe
    page: Page
    from_ms: int
    now_ms: int

    async def found(
        self, timeframe: Timeframe, served: Collection[str], listed_ms: int | None = None
    ) -> int | None:
        """When the first bar of a timeframe opens; None when there is none.

        `listed_ms` is the reported beginning of the market. Bars right before it disprove it.
        """
        rungs = ladder(timeframe, served)
        if listed_ms is None or await self._is_before(rungs[0], listed_ms):
            return await self._down(rungs, self.from_ms)
        since_ms = timeframe.floor(listed_ms)
        first = await self.probe(timeframe, since_ms, self.page(timeframe))
        if first is not None:
            return await self._first_of(timeframe, since_ms, first)
        return await self._down(rungs, since_ms)

    async def _is_before(self, rung: Timeframe, listed_ms: int) -> bool:
        """Whether there are bars in the window that ends at a market's reported beginning.

        Years of history depend on it, so one empty answer is not enough.
        """
        end_ms, bars = rung.floor(listed_ms), self.page(rung)
        since_ms = end_ms - bars * rung.ms
        first = await self.probe(rung, since_ms, bars)
        if first is None:
            first = await self.probe(rung, since_ms, bars, again=True)
        return first is not None and first < end_ms

    async def _down(self, rungs: Sequence[Timeframe], from_ms: int) -> int | None:
        first: int | None = from_ms
        for rung in rungs:
            if first is not None:
                first = await self._on_rung(rung, rung.floor(first))
        return first

    async def _on_rung(self, rung: Timeframe, from_ms: int) -> int | None:
        bars = self.page(rung)
        width = bars * rung.ms
        step = await self._first_window(rung, from_ms, (self.now_ms - from_ms) // width)
        if step is None:
            return None
        first = await self.probe(rung, from_ms + step * width, bars)
        while step > 0:
            before_ms = from_ms + (step - 1) * width
            earlier = await self.probe(rung, before_ms, bars, again=True)
            if earlier is None:
                break
            step, first = step - 1, earlier
        return None if first is None else await self._first_of(rung, from_ms + step * width, first)

    async def _first_window(self, rung: Timeframe, from_ms: int, last: int) -> int | None:
        """The first window that holds bars, when all behind it do; None when none does."""
        bars = self.page(rung)
        width, last = bars * rung.ms, max(0, last)
        empty, step = -1, 0
        tried: set[int] = set()
        while await self.probe(rung, from_ms + step * width, bars) is None:
            tried.add(step)
            if step == last:
                return await self._first_of_the_rest(rung, from_ms, last, tried)
            empty, step = step, min(last, max(1, 2 * step))
        while step - empty > 1:
            middle = (empty + step) // 2
            if await self.probe(rung, from_ms + middle * width, bars) is None:
                empty = middle
            else:
                step = middle
        return step

    async def _first_of_the_rest(
        self, rung: Timeframe, from_ms: int, last: int, tried: set[int]
    ) -> int | None:
        """Checks every window left: a delisted market may have existed wholly between two steps."""
        bars = self.page(rung)
        for step in (each for each in range(last) if each not in tried):
            if await self.probe(rung, from_ms + step * bars * rung.ms, bars) is not None:
                return step
        return None

    async def _first_of(self, rung: Timeframe, since_ms: int, found_ms: int) -> int:
        """The first bar of a window whose first row opens at `found_ms`."""
        while since_ms < found_ms:
            earlier = await self.probe(rung, since_ms, (found_ms - since_ms) // rung.ms)
            if earlier is None or earlier >= found_ms:
                break
            found_ms = earlier
        return found_ms


def ladder(timeframe: Timeframe, served: Collection[str]) -> list[Timeframe]:
    """The timeframes to search, longest first, ending with the requested one."""
    above = [rung for rung in _RUNGS if rung > timeframe and rung.name in served]
    return [*above, timeframe]
