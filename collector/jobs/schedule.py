"""When a job runs next. Pure: the server's time and the randomness are arguments.

Missed runs are not replayed one by one: a job that was away for a day runs once and looks for
itself how much there is to fetch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cronsim import CronSim, CronSimError

from collector.market.timeframe import Timeframe

INTERVAL_JITTER = 0.05
BAR_CLOSE_SETTLE_MS = 1_000
BAR_CLOSE_SPREAD_MS = 2_000


@dataclass(frozen=True, slots=True)
class Once:
    """Runs until it says it is done; between runs it waits only for tokens or after a fault."""

    def next_run(self, now_ms: int, spread: float) -> int:
        return now_ms

    def to_document(self) -> dict[str, Any]:
        return {"mode": "once"}


@dataclass(frozen=True, slots=True)
class Interval:
    """Every `interval_ms`, give or take a twentieth so that jobs do not march in step."""

    interval_ms: int

    def __post_init__(self) -> None:
        if self.interval_ms < 1:
            raise ValueError("interval_ms must be at least 1")

    def next_run(self, now_ms: int, spread: float) -> int:
        return now_ms + round(self.interval_ms * (1 + INTERVAL_JITTER * (2 * spread - 1)))

    def to_document(self) -> dict[str, Any]:
        return {"mode": "interval", "interval_ms": self.interval_ms}


@dataclass(frozen=True, slots=True)
class BarClose:
    """Soon after each bar closes: the exchange gets `settle_ms` to make up its mind."""

    timeframe: Timeframe
    settle_ms: int = BAR_CLOSE_SETTLE_MS

    def next_run(self, now_ms: int, spread: float) -> int:
        # A run at close + settle + jitter is for that close; the next is one bar later.
        close = self.timeframe.next_open(now_ms - self.settle_ms)
        widest = min(BAR_CLOSE_SPREAD_MS, self.timeframe.ms // 20)
        return close + self.settle_ms + round(widest * spread)

    def to_document(self) -> dict[str, Any]:
        return {
            "mode": "bar_close",
            "timeframe": self.timeframe.name,
            "interval_ms": self.timeframe.ms,
            "settle_ms": self.settle_ms,
        }


@dataclass(frozen=True, slots=True)
class Cron:
    """By a five-field cron expression, in UTC."""

    expression: str

    def __post_init__(self) -> None:
        try:
            CronSim(self.expression, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError(f"{self.expression!r} is not a cron expression: {error}") from error

    def next_run(self, now_ms: int, spread: float) -> int:
        after = datetime.fromtimestamp(now_ms / 1000, UTC)
        return round(next(CronSim(self.expression, after)).timestamp() * 1000)

    def to_document(self) -> dict[str, Any]:
        return {"mode": "cron", "expression": self.expression}


Schedule = Once | Interval | BarClose | Cron


def parse(document: dict[str, Any] | None) -> Schedule:
    """Reads the `schedule` field of a job. Raises ValueError with what is wrong."""
    fields = document or {"mode": "once"}
    mode = fields.get("mode")
    if mode == "once":
        return Once()
    if mode == "interval":
        return Interval(int(fields["interval_ms"]))
    if mode == "bar_close":
        settle = int(fields.get("settle_ms", BAR_CLOSE_SETTLE_MS))
        return BarClose(Timeframe.parse(fields["timeframe"]), settle)
    if mode == "cron":
        return Cron(str(fields["expression"]))
    raise ValueError(f"schedule.mode {mode!r} is not one of once, interval, bar_close, cron")
