"""`price_stream`: live prices of an exchange, with a heartbeat and its market's status.

It runs until it is stopped: the lease is renewed as for any job, and its holder publishes under its
fence. It only opens connections, and writes nothing into the lake.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.connectors.history_budget import history_budget
from collector.connectors.registry import ConnectorRegistry
from collector.errors import (
    DatabaseUnavailable,
    JobStopped,
    MarketsUnavailable,
    NotFound,
    RateLimited,
)
from collector.exchanges.ticks import SessionExchange, SourceCounts, TickRequest, ticks_of
from collector.jobs.live_series import collected_series, fetch_at_once, is_polled
from collector.jobs.params import PriceStreamParams
from collector.jobs.queue import JobQueue
from collector.market.calendar.lookup import calendar_of
from collector.streams.heartbeat import HeartbeatContext, StreamFacts, heartbeat, market_status
from collector.streams.live_board import LiveBoard
from collector.streams.tick_health import PollBounds
from collector.streams.ticking import Ticking
from workers.handlers.registry import Later, Outcome

if TYPE_CHECKING:
    from collector.exchanges.ticks import StreamEvent, TickSource
    from collector.mongo.client import Database
    from collector.streams.publisher import Publisher
    from workers.job_run import JobRun
    from workers.venues import Venue, Venues

SNAP_SECONDS = 3.0
FIRST_SNAP_SECONDS = 1.0
"""The first snapshot is not waited for as long as the others."""
HEARTBEAT_SECONDS = 1.0
SERIES_SECONDS = 10.0
"""How often the list of collected series is read again."""
PROGRESS_SECONDS = 60.0
FIRST_PROGRESS_SECONDS = 5.0
"""A stream that has lived so long is not what kills its workers, whether prices come or not."""
ELSEWHERE_MS = 5_000

ContextOf = Callable[[str], HeartbeatContext]


def no_context(_exchange_id: str) -> HeartbeatContext:
    return HeartbeatContext()


@dataclass(frozen=True, slots=True)
class PriceStream:
    """Publishes the prices of an exchange until it is stopped.

    `intervals` are seconds between snapshots by exchange, `bounds` those between polls, where they
    are configured. `context` adds information from other parts of the program to a heartbeat.
    """

    venues: Venues
    database: Database
    publishers: Sequence[Publisher]
    intervals: Mapping[str, float] = field(default_factory=dict)
    context: ContextOf = no_context
    bounds: Mapping[str, PollBounds] = field(default_factory=dict)

    async def __call__(self, run: JobRun) -> Outcome:
        venue = await run.tried(lambda: self.venues.get(run.job.exchange_id))
        stream = _Stream(self, run, venue, PriceStreamParams.of(run.job.params))
        await stream.publish_until_stopped()
        raise AssertionError("unreachable")


async def elsewhere(run: JobRun) -> Outcome:
    """The handler of a worker that ends when all work is done: it leaves streams to others."""
    return Later(ELSEWHERE_MS, run.cursor, run.progress)


class _Stream:
    """One run of the job."""

    def __init__(
        self, handler: PriceStream, run: JobRun, venue: Venue, params: PriceStreamParams
    ) -> None:
        self._handler = handler
        self._run = run
        self._venue = venue
        self._params = params
        self._id = run.job.exchange_id
        self._calendar = calendar_of(self._id)
        self._wanted = TickRequest(tuple(params.symbols))
        interval = params.price_snap_interval_seconds
        self._interval = interval or handler.intervals.get(self._id, SNAP_SECONDS)
        self._clock = venue.clock
        self._ticking = Ticking(
            self._id,
            run.fence,
            lambda: _Connection(self),
            self._calendar,
            self._clock,
            interval_seconds=self._interval,
            bounds=handler.bounds.get(self._id, PollBounds()),
            now=self._now(),
        )
        self._feeding: asyncio.Task[None] | None = None
        self._is_polled = False
        self._budget: Mapping[str, Any] | None = None

    async def publish_until_stopped(self) -> None:
        """Raises what ends the run: JobStopped, LeaseLost, or a permanent refusal."""
        try:
            await self._publish_on()
        except (JobStopped, RateLimited):
            await self._beat(stopped=True)
            await self._set_cadence(None)
            raise
        finally:
            if self._feeding is not None:
                self._feeding.cancel()
                await asyncio.gather(self._feeding, return_exceptions=True)
            self._ticking.close()

    async def _publish_on(self) -> None:
        now = self._clock.monotonic()
        duties = (
            _Every(SERIES_SECONDS, self._read_series, now),
            _Every(HEARTBEAT_SECONDS, self._heartbeat, now),
            _Every(self._interval, self._snapshot, now + min(self._interval, FIRST_SNAP_SECONDS)),
            _Every(PROGRESS_SECONDS, self._progress, now + FIRST_PROGRESS_SECONDS),
        )
        while True:
            now = self._clock.monotonic()
            for duty in duties:
                await duty.when_due(now)
            await self._fetch_closed()
            await self._wait(min(duty.due for duty in duties) - self._clock.monotonic())

    async def _wait(self, seconds: float) -> None:
        """Until the next duty, a closed bar, the end of the feed or the end of the run."""
        waiting = [
            asyncio.ensure_future(self._run.rest(max(0.0, seconds))),
            asyncio.ensure_future(self._ticking.bar_closed.wait()),
        ]
        feeding = [] if self._feeding is None else [self._feeding]
        try:
            await asyncio.wait([*waiting, *feeding], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        if self._feeding is not None and self._feeding.done():
            self._feeding.result()
        self._run.check()

    async def _read_series(self) -> None:
        """Begins with the symbols there are, and connects again when there are others."""
        try:
            job = await JobQueue(self._handler.database).get(self._run.job.id)
            self._params = PriceStreamParams.of(job.params)
            series = await collected_series(self._handler.database, self._id)
            self._is_polled = await is_polled(self._handler.database, self._id)
        except DatabaseUnavailable:
            return
        symbols = tuple(self._params.symbols) or tuple(dict.fromkeys(s for s, _ in series))
        wanted = TickRequest(symbols, series if self._params.watch_bars else ())
        if not wanted.symbols or (self._feeding is not None and wanted == self._wanted):
            return
        self._wanted = wanted
        await self._ticking.follow(symbols)
        if self._feeding is None:
            reading = self._ticking.feed.run(self._ticking.take)
            self._feeding = asyncio.create_task(reading, name=f"feed:{self._id}")
        await LiveBoard(self._handler.database).keep_only(self._id, self._run.fence, symbols)

    async def open_source(self) -> TickSource:
        """The ticks of the wanted symbols; for the feed, which connects again after a failure.

        A collected market that is gone must not end the stream of the others.
        """
        self._venue = await self._handler.venues.with_markets(self._id)
        wanted = self._wanted
        if not self._params.symbols:
            listed = set(await self._handler.venues.book.symbols(self._id))
            symbols = tuple(symbol for symbol in wanted.symbols if symbol in listed)
            if not symbols:
                raise MarketsUnavailable(f"{self._id}: none of the collected markets is listed")
            wanted = TickRequest(symbols, tuple(each for each in wanted.bars if each[0] in listed))
            self._ticking.expect(symbols)
        return ticks_of(self._venue.exchange, wanted)

    async def _heartbeat(self) -> None:
        await self._run.look()
        await self._obey_connector()
        await self._ticking.look_after(self._now())
        await self._beat()

    async def _beat(self, *, stopped: bool = False) -> None:
        exchange = self._venue.exchange
        pauses = exchange.pauses() if isinstance(exchange, SessionExchange) else {}
        facts = self._facts(stopped=stopped)
        beat = heartbeat(facts, self._handler.context(self._id).beside(self._budget, pauses))
        status = market_status(facts, self._calendar)
        for publisher in self._handler.publishers:
            await publisher.publish_heartbeat(beat)
            await publisher.publish_market_status(status)

    def _facts(self, *, stopped: bool = False) -> StreamFacts:
        exchange = self._venue.exchange
        return self._ticking.facts(
            self._now(),
            session=exchange.session_state() if isinstance(exchange, SessionExchange) else None,
            is_polled=self._is_polled,
            stopped=stopped,
        )

    async def _snapshot(self) -> None:
        now = self._now()
        cadence = self._ticking.observe(now)
        if cadence is not None:
            await self._set_cadence(cadence.to_document())
        snapshot = self._ticking.snapshot(now)
        if snapshot is not None:
            for publisher in self._handler.publishers:
                await publisher.publish_prices(snapshot)

    async def _progress(self) -> None:
        """Notes on the job that the stream works, which forgets faults of earlier runs."""
        facts = self._facts()
        progress = {
            "ticks": facts.totals.received,
            "symbols": facts.symbols_total,
            "reconnects": facts.reconnects,
            "tick_ts": facts.tick_ts,
        }
        await self._run.commit(self._run.cursor, progress=progress)

    async def _fetch_closed(self) -> None:
        closed = self._ticking.take_closed()
        try:
            await fetch_at_once(self._handler.database, self._id, closed)
        except DatabaseUnavailable:
            return  # The bars come at their usual time.

    async def _obey_connector(self) -> None:
        """A stream buys no tokens, so it has to look whether the exchange may be used."""
        try:
            connector = await ConnectorRegistry(self._handler.database).get(self._id)
        except DatabaseUnavailable:
            return
        except NotFound:
            raise RateLimited(self._id, 1_000, "deleted") from None
        now_ms = self._venue.server_clock.now_ms()
        self._budget = history_budget(connector, now_ms)
        stopped = connector.stopped(now_ms)
        if stopped is not None and stopped.reason == "paused":
            raise RateLimited(self._id, 1_000, stopped.reason)

    async def _set_cadence(self, cadence: Mapping[str, float | str] | None) -> None:
        try:
            await ConnectorRegistry(self._handler.database).set_cadence(self._id, cadence)
        except (DatabaseUnavailable, NotFound):
            return  # The next change writes it.

    def _now(self) -> float:
        """Epoch seconds on the database's clock, which all workers share."""
        return self._venue.server_clock.now_ms() / 1000


class _Connection:
    """A `TickSource` that first makes sure that markets are known, which may need a login.

    That takes as long as it takes, in the feed's task, while the heartbeat goes on.
    """

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._source: TickSource | None = None

    @property
    def counts(self) -> SourceCounts:
        return SourceCounts() if self._source is None else self._source.counts

    async def connect(self) -> None:
        self._source = await self._stream.open_source()
        await self._source.connect()

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        assert self._source is not None
        return aiter(self._source)

    async def close(self) -> None:
        if self._source is not None:
            await self._source.close()


class _Every:
    """Something that is done every so many seconds, late rather than twice."""

    def __init__(self, seconds: float, do: Callable[[], Awaitable[None]], first: float) -> None:
        self._seconds = seconds
        self._do = do
        self.due = first

    async def when_due(self, now: float) -> None:
        if now < self.due:
            return
        # From its due time on, so that a beat a second stays one a second.
        on_time = self.due + self._seconds
        self.due = on_time if on_time > now else now + self._seconds
        await self._do()
