"""One running price stream: its feed, its last prices, and what is known of their health."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from collector import logs, metrics
from collector.exchanges.exclusive import SessionState
from collector.exchanges.ticks import PriceTick, SeenClosed
from collector.streams.heartbeat import StreamFacts
from collector.streams.last_prices import LastPrices
from collector.streams.publisher import PriceSnapshot
from collector.streams.states import (
    Connection,
    PriceState,
    Since,
    diagnosis,
    price_state,
)
from collector.streams.tick_feed import TickFeed
from collector.streams.tick_health import TickHealthMonitor, changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.clock import Clock
    from collector.exchanges.ticks import StreamEvent, TickSource
    from collector.market.calendar.calendar import Calendar
    from collector.streams.tick_health import Cadence, PollBounds

SYMBOLS_SHOWN = 200
"""A heartbeat shows no more symbols than this, those whose ticks are the oldest."""

_log = logs.get("collector.streams")


class Ticking:
    """Everything about a stream but its publication. `now` is in epoch seconds."""

    def __init__(
        self,
        exchange_id: str,
        fence: int,
        open_source: Callable[[], TickSource],
        calendar: Calendar,
        clock: Clock,
        *,
        interval_seconds: float,
        bounds: PollBounds,
        now: float,
    ) -> None:
        self._id = exchange_id
        self._fence = fence
        self._calendar = calendar
        self._clock = clock
        self._interval_seconds = interval_seconds
        self._monitor = TickHealthMonitor(bounds)
        self._book = LastPrices()
        self._diagnosis = Since(SessionState.RECOVERING, now)
        self._price_state = PriceState.WAITING
        self._counted = (0, 0, 0)
        self._is_judged = False
        self.feed = TickFeed(exchange_id, open_source, clock)
        self.closed: list[SeenClosed] = []
        self.bar_closed = asyncio.Event()

    def take(self, event: StreamEvent) -> None:
        if isinstance(event, PriceTick):
            self._book.take(event, self._clock.monotonic())
            return
        self.closed.append(event)
        self.bar_closed.set()

    def expect(self, symbols: Iterable[str]) -> None:
        """Whose prices are expected from now on; others are forgotten."""
        self._book.follow(symbols, self._clock.monotonic())

    async def follow(self, symbols: Iterable[str]) -> None:
        """Expects prices of these symbols, over another connection if there is one by now."""
        await self.feed.renew()
        self.expect(symbols)

    def take_closed(self) -> tuple[tuple[str, str], ...]:
        """The series of which a bar has closed since the last call."""
        closed, self.closed = self.closed, []
        self.bar_closed.clear()
        return tuple(sorted({(each.symbol, each.timeframe) for each in closed}))

    def snapshot(self, now: float) -> PriceSnapshot | None:
        """What is new, or None: an empty snapshot is not published."""
        prices = self._book.snapshot(now)
        if not prices:
            return None
        metrics.PRICES_PUBLISHED.labels(self._id).inc(len(prices))
        return PriceSnapshot(self._id, self._fence, now, prices)

    def observe(self, now: float) -> Cadence | None:
        """Judges the ticks, once a cycle. The cadence, when it is the first or has changed."""
        first, self._is_judged = not self._is_judged, True
        before = self._monitor.health.cadence
        longest = self._book.longest_silence(self._clock.monotonic())
        is_open = self._is_open(now)
        health = self._monitor.observe(self.silence, is_open=is_open, longest=longest)
        for line in changes(before, health.cadence):
            _log.info(line, exchange=self._id)
        return None if health.cadence == before and not first else health.cadence

    @property
    def silence(self) -> float | None:
        return self._book.silence(self._clock.monotonic())

    async def look_after(self, now: float) -> None:
        """Once a second: a stream that is silent in an open market gets another connection."""
        if self._is_open(now):
            await self.feed.renew_when_silent(self.silence)
        self._count()

    def close(self) -> None:
        """The stream passes to another worker, or ends: its silence does not count here."""
        self._count()
        with suppress(KeyError):
            metrics.TICK_SILENCE.remove(self._id)

    def facts(
        self,
        now: float,
        *,
        session: SessionState | None = None,
        is_polled: bool = False,
        stopped: bool = False,
    ) -> StreamFacts:
        """What is known at this moment. `session` is the exchange's, where it has one."""
        connection = Connection.CLOSED if stopped else self.feed.connection
        is_open = self._is_open(now)
        state = diagnosis(connection, self.silence, is_open=is_open, session=session)
        self._diagnosis = self._diagnosis.then(state, now)
        self._price_state = price_state(self._price_state, self.silence, stopped=stopped)
        symbols = self._book.symbols_state(now, SYMBOLS_SHOWN)
        return StreamFacts(
            exchange_id=self._id,
            fence=self._fence,
            now=now,
            diagnosis=self._diagnosis,
            price_state=self._price_state,
            connection=connection,
            health=self._monitor.health,
            silence=self.silence,
            snap_ts=self._book.snap_ts,
            tick_ts=self._book.tick_ts,
            interval_seconds=self._interval_seconds,
            totals=self._book.totals,
            waiting=self._book.waiting,
            unreadable=self.feed.errors,
            dropped=self.feed.dropped,
            reconnects=self.feed.reconnects,
            is_polled=is_polled,
            symbols_total=self._book.symbols,
            symbols_state=symbols,
            last_error=self.feed.last_error,
        )

    def _is_open(self, now: float) -> bool:
        return self._calendar.is_open(round(now * 1000))

    def _count(self) -> None:
        """Adds what has happened since the last time to the metrics."""
        totals = self._book.totals
        counted = (totals.received, totals.errors + self.feed.errors, self.feed.dropped)
        before, self._counted = self._counted, counted
        counters = (metrics.TICKS, metrics.TICK_ERRORS, metrics.TICKS_DROPPED)
        for counter, old, new in zip(counters, before, counted, strict=True):
            counter.labels(self._id).inc(new - old)
        if self.silence is not None:
            metrics.TICK_SILENCE.labels(self._id).set(self.silence)
