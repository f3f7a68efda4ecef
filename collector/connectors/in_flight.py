"""Requests under way, and what is charged for those that take long.

A request that arrives late is counted by the exchange later than by us. So it is charged again: at
its answer when that was late, and, as long as there is none, at half a period and every half period
after, so that its slot never comes free while it hangs. window.py proves that this is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.connectors.lateness import Lateness, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.connectors.window import Window


NEVER = float("inf")


@dataclass(slots=True)
class Flight:
    """One request: when its token was requested, its weight, and when each window charges next."""

    asked_at: float
    weight: int
    charged_at: list[float]
    resets_at: list[float]
    """When the fixed windows that granted it end; never for sliding ones."""


@dataclass(slots=True)
class InFlight:
    """The requests of one exchange that this process has sent. Times are monotonic seconds."""

    windows: Sequence[Window] = ()
    lateness: Lateness = field(default_factory=Lateness)
    report: Report = field(default_factory=Report)
    charges: list[int] = field(default_factory=list)
    """What is to be counted once more, by window."""
    charged: int = 0
    """How many requests that is."""
    _flights: dict[int, Flight] = field(default_factory=dict)

    @property
    def least_ms(self) -> float:
        """The shortest known time from the request for a token to the exchange's answer."""
        return min(self.lateness.least_ms, self.report.least_ms)

    def know(self, windows: Sequence[Window], lateness: Lateness) -> None:
        """Takes over the limits and what all workers have reported.

        What was to be charged to a window is charged to those of the same unit.
        """
        before, self.windows, self.lateness = self.windows, windows, lateness
        if _names(before) == _names(windows) and len(self.charges) == len(windows):
            return
        charges = list(zip(before, self.charges, strict=False))
        self.charges = [
            max((charge for old, charge in charges if old.unit == window.unit), default=0)
            for window in windows
        ]
        for flight in self._flights.values():
            flight.resets_at = [*flight.resets_at, *(NEVER for _ in windows)][: len(windows)]
            flight.charged_at = self._first_charges(flight.asked_at, flight.resets_at)

    def leaves(self, token: int, asked_at: float, weight: int, resets_at: Sequence[float]) -> None:
        """A request leaves; `token` identifies it."""
        first = self._first_charges(asked_at, resets_at)
        self._flights[token] = Flight(asked_at, weight, first, list(resets_at))

    def _first_charges(self, asked_at: float, resets_at: Sequence[float]) -> list[float]:
        """When a request that is still under way is charged first, by window."""
        return [
            asked_at + self._grace(at, window) if resets == NEVER else NEVER
            for at, (window, resets) in enumerate(zip(self.windows, resets_at, strict=False))
        ]

    def came_back(self, token: int, now: float | None, *, learn: bool = True) -> None:
        """Its answer came; or there will be none (None), and the time of its arrival is unknown.

        Only an answer teaches how long requests take. A connection that is refused within 3 ms
        would make all punctual answers late.
        """
        flight = self._flights.pop(token, None)
        if flight is None:
            return
        if now is None:
            self._charge(flight, [True] * len(self.windows))
            return
        took_ms = (now - flight.asked_at) * 1000
        late_ms = took_ms - min(self.least_ms, took_ms)
        if learn:
            self.report.add(took_ms, late_ms)
        late = [
            self._is_late(late_ms, at, window) if resets == NEVER else now >= resets
            for at, (window, resets) in enumerate(zip(self.windows, flight.resets_at, strict=False))
        ]
        self._charge(flight, late)

    def never_left(self, token: int) -> None:
        """Its token is counted and was not used."""
        self._flights.pop(token, None)

    def charge_the_hanging(self, now: float) -> float | None:
        """Charges what has been under way too long; returns when to look again, if ever."""
        next_look: float | None = None
        for flight in self._flights.values():
            due = [now >= moment for moment in flight.charged_at]
            if any(due):
                self._charge(flight, due)
                for at, (window, is_due) in enumerate(zip(self.windows, due, strict=False)):
                    if is_due:
                        flight.charged_at[at] = now + window.period_ms / 2000
            soonest = min(flight.charged_at, default=NEVER)
            next_look = soonest if next_look is None else min(next_look, soonest)
        return next_look

    def charge(self, counts: Sequence[int]) -> None:
        """Counts so much of each window once more."""
        pairs = zip(self.charges, counts, strict=False)
        self.charges = [charge + more for charge, more in pairs]

    def take_charges(self) -> tuple[list[int], int]:
        """What is to be counted once more, by window, and for how many requests."""
        taken = self.charges, self.charged
        self.charges, self.charged = [0] * len(self.windows), 0
        return taken

    def give_back(self, charges: Sequence[int], charged: int) -> None:
        """They could not be written: the next command includes them."""
        if len(charges) == len(self.charges):
            self.charges = [a + b for a, b in zip(self.charges, charges, strict=True)]
            self.charged += charged

    def _grace(self, at: int, window: Window) -> float:
        """How long a request may be under way uncharged: half a period, or B + margin."""
        margin = self.lateness.margin(at, window).judged_ms
        least = self.least_ms if self.least_ms < NEVER else 0.0
        return min(max(window.period_ms / 2, least + margin), window.period_ms) / 1000

    def _is_late(self, late_ms: float, at: int, window: Window) -> bool:
        token_ms = min(self.lateness.token_ms, self.report.token_ms)
        return late_ms > self.lateness.margin(at, window).judged_ms - token_ms

    def _charge(self, flight: Flight, due: Sequence[bool]) -> None:
        for at, (window, is_due) in enumerate(zip(self.windows, due, strict=False)):
            if is_due:
                self.charges[at] += window.cost(flight.weight)
        self.charged += any(due)


def _names(windows: Sequence[Window]) -> list[tuple[str, int]]:
    return [(window.unit, window.period_ms) for window in windows]
