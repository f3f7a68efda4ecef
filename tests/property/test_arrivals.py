"""No sliding period at the exchange holds more than the limit, however late requests are.

The limiter of one exchange in discrete time: the window's own arithmetic decides, the process's own
account of requests under way charges, and every request takes as long on each leg of its way as
hypothesis likes. What the exchange counts are arrivals.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.connectors.in_flight import NEVER, InFlight
from collector.connectors.lateness import Lateness, Margin
from collector.connectors.window import Usage, Window, usage
from tests.support.examples import examples

START_MS = 1_700_000_000_000
TOKEN_MS, OUT_MS, BACK_MS = 1, 10, 10
"""The fastest legs there are: to the database and back, to the exchange, and from it."""
FASTEST_MS = TOKEN_MS + OUT_MS + BACK_MS


@dataclass(frozen=True)
class Way:
    """What one request takes longer than the fastest, on each leg, in milliseconds."""

    asking: int
    out: int
    back: int


ways = st.builds(
    Way,
    st.integers(0, 30),
    st.integers(0, 60) | st.integers(0, 4_000),
    st.integers(0, 60) | st.integers(0, 4_000),
)


@dataclass
class World:
    """One greedy process, its limiter and the exchange, from event to event."""

    window: Window
    ways: list[Way]
    margins: list[tuple[int, Margin]]
    """Margins and when they begin, as changes of them are decided while requests are under way."""
    arrivals: list[int] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = Lateness(least_ms=FASTEST_MS, token_ms=TOKEN_MS, margins=(self.margins[0][1],))
        self.flying = InFlight()
        self.flying.know([self.granting(0)], known)
        self.flying.report.token_ms = TOKEN_MS

    def granting(self, now: int) -> Window:
        return replace(self.window, measured_ms=self.margin(now).granted_ms)

    def margin(self, now: int) -> Margin:
        return [margin for begins, margin in self.margins if begins <= now][-1]

    def counted(self, now: int, cost: int) -> None:
        """`cost` tokens counted in the current bin."""
        window = self.granting(now)
        moment = START_MS + now
        current = moment - moment % window.bin_ms
        bins = [*self.state.get("bins", [])]
        if self.state and self.state["t"] != current:
            bins.append({"t": self.state["t"], "n": self.state["cur"]})
        before = self.state["cur"] if self.state and self.state["t"] == current else 0
        self.state = {"t": current, "cur": before + cost, "bins": bins}

    def settle(self, now: int) -> float:
        """What is to be charged is written by a command of its own, at once.

        Returns when something under way is charged next.
        """
        margin = self.margin(now)
        self.flying.lateness = replace(self.flying.lateness, margins=(margin,))
        self.flying.windows = [self.granting(now)]
        next_look = self.flying.charge_the_hanging(now / 1000)
        (cost,), _ = self.flying.take_charges()
        if cost:
            self.counted(now, cost)
        return NEVER if next_look is None else next_look * 1000

    def next_moment(self, now: int, used: Usage, next_look: float, events: list[Any]) -> int:
        """The next at which anything may happen."""
        room = used.first(lambda used: used < self.window.limit, START_MS + now) - START_MS
        changes = [begins for begins, _ in self.margins]
        moments = [room, next_look, *changes, *(event[0] for event in events[:1])]
        return max(now + 1, math.ceil(min(each for each in moments if each > now)))

    def run(self) -> list[int]:
        """Every request asks for its token as early as it can; returns the arrivals."""
        events: list[tuple[int, int, str, int]] = []
        numbers, waiting, now = count(), list(enumerate(self.ways)), 0
        while True:
            while events and events[0][0] <= now:
                moment, _, kind, number = heapq.heappop(events)
                if kind == "answer":
                    self.flying.came_back(number, moment / 1000)
                self.settle(now)
            if not waiting and not events:
                break
            next_look = self.settle(now)
            used = usage(self.granting(now), self.state, "sliding_window", START_MS + now)
            if waiting and used.used < self.window.limit:
                number, way = waiting.pop(0)
                self.counted(now, 1)
                # The command was sent a moment before it was decided.
                asked = now - way.asking
                self.flying.leaves(number, asked / 1000, 1, [NEVER])
                arrival = now + TOKEN_MS + OUT_MS + way.out
                self.arrivals.append(arrival)
                heapq.heappush(
                    events, (arrival + BACK_MS + way.back, next(numbers), "answer", number)
                )
            else:
                now = self.next_moment(now, used, next_look, events)
        return sorted(self.arrivals)


def most_in_any(period_ms: int, moments: list[int]) -> int:
    return max(sum(moment - period_ms < other <= moment for other in moments) for moment in moments)


@settings(max_examples=examples(150), deadline=None)
@given(
    limit=st.integers(1, 6),
    period_ms=st.sampled_from([200, 500, 1_000]),
    margin_ms=st.integers(10, 60),
    ways=st.lists(ways, min_size=2, max_size=40),
)
def test_no_period_is_exceeded_whatever_the_delays(
    limit: int, period_ms: int, margin_ms: int, ways: list[Way]
) -> None:
    window = Window("requests", limit, period_ms)
    margin = Margin(
        min(margin_ms, window.largest_margin_ms), min(margin_ms, window.largest_margin_ms)
    )
    world = World(window, ways, [(0, margin)])
    assert most_in_any(period_ms, world.run()) <= limit


@settings(max_examples=examples(100), deadline=None)
@given(
    limit=st.integers(1, 4),
    wanted=st.lists(st.tuples(st.integers(0, 600), st.integers(10, 120)), min_size=1, max_size=5),
    ways=st.lists(ways, min_size=2, max_size=40),
)
def test_nor_while_the_margin_changes(
    limit: int, wanted: list[tuple[int, int]], ways: list[Way]
) -> None:
    window = Window("requests", limit, 500)
    now, margin = 0, Margin(window.fixed_margin_ms, window.fixed_margin_ms)
    margins = [(0, margin)]
    for later, wanted_ms in wanted:
        now += later
        best = min(wanted_ms, window.largest_margin_ms)
        margin = margin.settled(START_MS + now).towards(best, window, START_MS + now)
        margins.append((now, margin))
    margins.append((now + 5_000, margin.settled(2**53)))
    assert most_in_any(500, World(window, ways, margins).run()) <= limit


def test_a_smaller_margin_is_not_granted_by_before_the_larger_one_has_passed() -> None:
    """A request that was late within the old margin was not charged: it must count as long."""
    window = Window("requests", 1, 500)
    old = Margin(60, 60)
    new = old.towards(10, window, START_MS + 100)
    margins = [(0, old), (100, new), (5_000, new.settled(2**53))]
    late, punctual = Way(0, 50, 0), Way(0, 0, 0)
    first, second, *_ = World(window, [late, punctual, punctual], margins).run()
    assert second - first >= 500
