"""Faults of a whole page of bars: well-formed rows that answer another question."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from collector.durations import MINUTE_MS
from collector.simulated.faults.record import Count, RequestFault, Span

if TYPE_CHECKING:
    from collector.simulated.faults.record import Strike


class Asked(NamedTuple):
    """What a request for bars asks."""

    symbol: str
    start: int | None
    end: int | None
    limit: int
    now_ms: int


@dataclass(frozen=True, kw_only=True)
class PageFault(RequestFault, ABC):
    """Answers another question than was asked.

    With `spans`, only requests that begin inside one of them; the first `times` of those.
    """

    endpoint: str | None = "klines"
    spans: tuple[Span, ...] = ()
    times: Count | None = None

    def change(self, asked: Asked, turn: Strike) -> Asked:
        """The question that is answered instead."""
        at = asked.start
        if self.spans and (at is None or not any(a <= at < b for a, b in self.spans)):
            return asked
        if self.times is not None and not any(map(turn.first_time, range(self.times))):
            return asked
        return self.mistake(asked)

    @abstractmethod
    def mistake(self, asked: Asked) -> Asked: ...


@dataclass(frozen=True, kw_only=True)
class IgnoresSince(PageFault):
    """The newest rows, whatever the moment that was asked for."""

    kind: Literal["ignores_since"] = "ignores_since"

    def mistake(self, asked: Asked) -> Asked:
        return asked._replace(start=None, end=None)


@dataclass(frozen=True, kw_only=True)
class OtherSymbol(PageFault):
    """The rows of another market."""

    kind: Literal["other_symbol"] = "other_symbol"
    other: str = "ETHUSDT"

    def mistake(self, asked: Asked) -> Asked:
        return asked._replace(symbol=self.other)


@dataclass(frozen=True, kw_only=True)
class Stale(PageFault):
    """A replica that is `minutes` behind."""

    kind: Literal["stale"] = "stale"
    minutes: Count = 12

    def mistake(self, asked: Asked) -> Asked:
        return asked._replace(now_ms=asked.now_ms - self.minutes * MINUTE_MS)
