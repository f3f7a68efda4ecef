"""When a job runs next. Pure: the server's time and the randomness are arguments.

Missed runs are not replayed one by one: a job that did not run for a day runs once and finds out
itself how much there is to fetch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cronsim import CronSim, CronSimError

from collector.durations import HOUR_MS, MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.market.timeframe import Timeframe

INTERVAL_JITTER = 0.05
LEAST_INTERVAL_MS = 1_000
"""What a user may ask for: less would keep a worker and MongoDB busy with nothing else."""
BAR_CLOSE_SETTLE_MS = 1_000
BAR_CLOSE_SPREAD_MS = 2_000
LEAST_POLL_SECONDS = 2.0
LEAST_LONG_POLL_SECONDS = 3.0
MOST_POLL_SECONDS = 20.0
LAST_BAR_MS = MINUTE_MS
"""Polls go on for so long after a market has closed."""
FOREIGN_MS = HOUR_MS


@dataclass(frozen=True, slots=True)
class Once:
    """Runs until it reports that it is done; waits only for tokens or after a fault."""

    def next_run(self, now_ms: int, spread: float) -> int:
        return now_ms

    def to_document(self) -> dict[str, Any]:
        return {"mode": "once"}


@dataclass(frozen=True, slots=True)
class Every:
    """Every `interval_ms`, plus or minus a twentieth so that jobs do not run in step."""

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
    """Soon after each bar closes: the exchange gets `settle_ms` to complete the bar.

    No bar closes while the market is closed, so nothing runs then.
    """

    timeframe: Timeframe
    settle_ms: int = BAR_CLOSE_SETTLE_MS

    def next_run(self, now_ms: int, spread: float) -> int:
        # A run at close + settle + jitter is for that close; the next is one bar later.
        close = self.timeframe.next_close(now_ms - self.settle_ms)
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
class Poll:
    """Every few seconds, by the connector's `cadence`; a poll without a new bar sends no request.

    `seconds` is what was last read from there. Without it, as where no price stream runs, a poll
    comes after each close. Closed time is skipped, after a moment for the last bar before it.
    """

    timeframe: Timeframe
    seconds: float | None = None

    @property
    def least_seconds(self) -> float:
        return LEAST_POLL_SECONDS if self.timeframe.ms <= MINUTE_MS else LEAST_LONG_POLL_SECONDS

    def at_cadence(self, cadence: Mapping[str, Any] | None) -> Poll:
        """By `m1` for bars of a minute, by `m5` for longer ones."""
        name = "m1" if self.timeframe.ms <= MINUTE_MS else "m5"
        seconds = (cadence or {}).get(name)
        return self if seconds is None else replace(self, seconds=float(seconds))

    def next_run(self, now_ms: int, spread: float) -> int:
        if self.seconds is None:
            return BarClose(self.timeframe).next_run(now_ms, spread)
        seconds = min(max(self.seconds, self.least_seconds), MOST_POLL_SECONDS)
        at = now_ms + round(1000 * seconds)
        reachable = at - LAST_BAR_MS
        if self.timeframe.behind_closed(reachable) == reachable:
            return at
        return self.timeframe.behind_closed(at)

    def to_document(self) -> dict[str, Any]:
        return {"mode": "poll", "timeframe": self.timeframe.name}


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


@dataclass(frozen=True, slots=True)
class Foreign:
    """A schedule of another version of this program, kept unchanged. Its runs return late."""

    fields: Mapping[str, Any]

    def next_run(self, now_ms: int, spread: float) -> int:
        return now_ms + FOREIGN_MS

    def to_document(self) -> dict[str, Any]:
        return dict(self.fields)


Schedule = Once | Every | BarClose | Poll | Cron | Foreign


def parse(document: dict[str, Any] | None, exchange_id: str = "", symbol: str = "") -> Schedule:
    """Reads the `schedule` field of an exchange's job. Raises ValueError that names the fault."""
    fields = document or {"mode": "once"}
    mode = fields.get("mode")
    if mode == "once":
        return Once()
    if mode == "interval":
        return Every(int(fields["interval_ms"]))
    if mode in ("bar_close", "poll"):
        from collector.market.timeframe import Timeframe

        timeframe = Timeframe.parse(fields["timeframe"]).at(exchange_id, symbol)
        if mode == "poll":
            return Poll(timeframe)
        return BarClose(timeframe, int(fields.get("settle_ms", BAR_CLOSE_SETTLE_MS)))
    if mode == "cron":
        return Cron(str(fields["expression"]))
    raise ValueError(f"schedule.mode {mode!r} is not one of once, interval, bar_close, poll, cron")


def stored(document: dict[str, Any] | None, exchange_id: str, symbol: str) -> Schedule:
    """The same for an existing job, which another version may have created."""
    try:
        return parse(document, exchange_id, symbol)
    except (ValueError, KeyError):
        return Foreign(document or {})
