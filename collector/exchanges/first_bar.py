"""Finds a market's first bar where the venue does not report it, in a handful of requests.

Such a venue answers a request with the bars of a window: a page of bars long, from `since`. So the
search steps through windows, twice as far each time, until one holds bars, and then bisects
backwards. It starts with daily bars, whose windows are years long, and goes down a ladder to the
requested bars; below the first rung the answer is nearly always in the first window.

Single answers are checked. A listing date is a hint: it is checked first, and so is the time right
before it. The window before the one where bars begin is requested once more, because venues answer
empty when they are busy; so is the part of a window before its first row, because a venue may have
left out the oldest.

Where the bars begin is believed when a second answer about the time before agrees: one with longer
bars, whose first one must contain the first bar. A venue that counts rows from a moment on needs no
search, only this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from collector.errors import ExchangeUnavailable
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from collector.market.answer import Answer

    Page = Callable[[Timeframe], int]
    """How many bars long a window is."""

BEFORE_ALL_MARKETS_MS = 1_262_304_000_000  # 2010-01-01
ROUNDS = 3
"""Pairs of answers that may contradict each other before the beginning is left unconfirmed."""
_RUNGS = tuple(Timeframe.parse(name) for name in ("1d", "1h", "1m"))


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where the bars of a market begin."""

    first_ms: int
    """When the first bar opens, as far as answers showed."""
    from_ms: int
    """The earliest moment at which any answer showed a bar; `first_ms` when it is confirmed."""


class NotConfirmed(ExchangeUnavailable):
    """The venue has a first bar, and no longer bars around it. The search begins anew."""


def first_inside(answer: Answer, *, anywhere: bool = False) -> int | None:
    """The first row of an answer that is about the question; None when there is none.

    `anywhere`: the venue jumps to the next rows it has, however far away.
    """
    times, asked = answer.rows.times, answer.question
    for ts in times.tolist():
        if ts >= asked.from_ms and (anywhere or ts < asked.to_ms):
            return int(ts)
    return None


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
    ) -> Beginning | None:
        """Where the bars of a timeframe begin; None when there are none.

        `listed_ms` is the reported beginning of the market. Bars right before it disprove it.
        """
        rungs = ladder(timeframe, served)
        first = await self._searched(timeframe, rungs, listed_ms)
        return None if first is None else await self._confirmed(timeframe, rungs[0], first)

    async def of_counted_rows(
        self, timeframe: Timeframe, served: Collection[str]
    ) -> Beginning | None:
        """The same where a request from the beginning of time returns the first rows there are."""
        first = await self.probe(timeframe, self.from_ms, 1)
        if first is None:
            first = await self.probe(timeframe, self.from_ms, 1, again=True)
        if first is None:
            return None
        return await self._confirmed(timeframe, ladder(timeframe, served)[0], first, jumps=True)

    async def _searched(
        self, timeframe: Timeframe, rungs: Sequence[Timeframe], listed_ms: int | None
    ) -> int | None:
        if listed_ms is None or await self._is_before(rungs[0], listed_ms):
            return await self._down(rungs, self.from_ms)
        since_ms = timeframe.floor(listed_ms)
        first = await self.probe(timeframe, since_ms, self.page(timeframe))
        if first is not None:
            return await self._first_of(timeframe, since_ms, first)
        return await self._down(rungs, since_ms)

    async def _confirmed(
        self, timeframe: Timeframe, rung: Timeframe, first_ms: int, *, jumps: bool = False
    ) -> Beginning:
        """Asks for longer bars from before the first bar on, until both answers agree."""
        from_ms, spoke = first_ms, False
        for turn in range(ROUNDS):
            before = self.page(rung) // 2
            since_ms = max(self.from_ms, rung.shift(first_ms, -before))
            since_ms = rung.shift(self.from_ms if jumps else since_ms, turn)
            bars = turn + 2 if jumps else rung.count(since_ms, rung.floor(first_ms)) + 2
            longer_ms = await self.probe(rung, since_ms, bars, again=True)
            if longer_ms is None:
                continue
            spoke = True
            if longer_ms == rung.floor(first_ms):
                return Beginning(first_ms, first_ms)
            from_ms = min(from_ms, longer_ms)
            near_ms = timeframe.floor(min(longer_ms, first_ms))
            bars = turn + 1 if jumps else self.page(timeframe) - turn
            earlier = await self.probe(timeframe, near_ms, bars, again=True)
            first_ms = first_ms if earlier is None else min(first_ms, earlier)
        if not spoke and not await self._is_repeated(timeframe, first_ms, jumps=jumps):
            raise NotConfirmed(f"no second answer confirms that the first bar is at {first_ms}")
        return Beginning(first_ms, from_ms)

    async def _is_repeated(self, timeframe: Timeframe, first_ms: int, *, jumps: bool) -> bool:
        """Whether another question gives the same first bar, where there are no longer bars."""
        before = self.page(timeframe) // 2
        since_ms = timeframe.shift(self.from_ms, 1) if jumps else timeframe.shift(first_ms, -before)
        found = await self.probe(timeframe, since_ms, before + 1, again=True)
        return found == first_ms

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
