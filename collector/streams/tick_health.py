"""The health of an exchange's ticks, and how often its new bars are polled. Pure.

`TickHealthMonitor` gets once a cycle how long no tick has come, of any symbol and of the one that
is silent longest, and whether the market is open. It decides three things: whether prices are ok,
lag or stale; whether history is requested at all; and the seconds between two polls for new bars.
While ticks come, polls come at their shortest; while none come they become rarer with each cycle;
in a closed market they are rarest at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from collector.jobs.schedule import (
    LEAST_LONG_POLL_SECONDS,
    LEAST_POLL_SECONDS,
    MOST_POLL_SECONDS,
)

LAG_SECONDS = 12.0
STALE_SECONDS = 30.0


class Prices(StrEnum):
    OK = "ok"
    LAG = "lag"
    STALE = "stale"


class HistoryMode(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class PollBounds:
    """The least seconds between two polls of 1m and of longer bars, and the most of both."""

    m1: float = LEAST_POLL_SECONDS
    m5: float = LEAST_LONG_POLL_SECONDS
    most: float = MOST_POLL_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.m1 <= self.most or not 0 < self.m5 <= self.most:
            raise ValueError("the least seconds between polls are above 0 and at most the most")


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds between two polls for new bars, and why."""

    m1: float
    m5: float
    reason: str

    def to_document(self) -> dict[str, float | str]:
        return {"m1": self.m1, "m5": self.m5, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class TickHealth:
    """What the monitor last decided."""

    prices: Prices
    history: HistoryMode
    cadence: Cadence


@dataclass(slots=True)
class TickHealthMonitor:
    """Turns silence into states and a cadence. `observe` is called once a cycle."""

    bounds: PollBounds = field(default_factory=PollBounds)
    _health: TickHealth | None = None

    @property
    def health(self) -> TickHealth:
        """The last decision; before the first, the market's best case."""
        if self._health is not None:
            return self._health
        least = Cadence(self.bounds.m1, self.bounds.m5, "started")
        return TickHealth(Prices.OK, HistoryMode.ACTIVE, least)

    def observe(
        self, silence: float | None, *, is_open: bool, longest: float | None = None
    ) -> TickHealth:
        """`silence` is None before the first tick: nothing is known to be late yet.

        `longest` is that of the symbol that is silent for the longest time. One that is dead among
        others makes prices lag; how often history is polled goes by the ticks of all.
        """
        prices = prices_of(silence)
        history = HistoryMode.ACTIVE if is_open else HistoryMode.PAUSED
        cadence = self._next(self.health.cadence, prices, is_open=is_open)
        if prices is Prices.OK and longest is not None and longest > STALE_SECONDS:
            prices = Prices.LAG
        self._health = TickHealth(prices, history, cadence)
        return self._health

    def _next(self, now: Cadence, prices: Prices, *, is_open: bool) -> Cadence:
        bounds = self.bounds
        if not is_open:
            return Cadence(bounds.most, bounds.most, "market_closed")
        if prices is Prices.OK:
            # Back at the shortest in two cycles, so that one tick alone brings no burst.
            return Cadence(_nearer(now.m1, bounds.m1), _nearer(now.m5, bounds.m5), "ticks")
        reason = "idling" if prices is Prices.LAG else "stale"
        return Cadence(min(bounds.most, now.m1 * 2), min(bounds.most, now.m5 * 2), reason)


def changes(before: Cadence, after: Cadence) -> tuple[str, ...]:
    """A line for the log for each poll that has become more or less frequent."""
    polls = (("m1", before.m1, after.m1), ("m5", before.m5, after.m5))
    return tuple(
        f"TickHealth: {name} poll {old:.1f} -> {new:.1f} (reason={after.reason})"
        for name, old, new in polls
        if old != new
    )


def prices_of(silence: float | None) -> Prices:
    if silence is None or silence <= LAG_SECONDS:
        return Prices.OK
    return Prices.LAG if silence <= STALE_SECONDS else Prices.STALE


def _nearer(now: float, least: float) -> float:
    return 2 * least if now > 2 * least else least
