"""The use cases of a collector, as the command line calls them.

Connectors, jobs and the rest are plain values in the shapes of `collector/operations/shown`. Errors
are those of the library, whichever form the fleet has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa

    from collector.history.reader import Mode
    from collector.operations.bulk_jobs import BulkAnswer
    from collector.operations.new_job import JobRequest
    from collector.operations.series_reports import SeriesFilter
    from collector.operations.stored_candles import CandlesAsked
    from collector.operations.stored_trades import TradesAsked
    from collector.operations.streams import SeriesRequest

Shown = dict[str, Any]
"""One thing as front ends show it, or a page `{"items": [...], "next_cursor": ...}`."""
Filters = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, slots=True)
class Made:
    """A connector or a job, and whether it was made now."""

    shown: Shown
    made: bool
    notes: tuple[str, ...] = ()
    is_known: bool = True
    """False when the markets of the exchange are not known yet."""


class FleetConnectors(Protocol):
    """Exchanges: limits, pauses, bans. NotFound for one without a connector."""

    async def all(self) -> list[Shown]: ...

    async def get(self, exchange_id: str) -> Shown: ...

    async def ensure(
        self, exchange_id: str, figures: Mapping[str, Any], notes: str | None
    ) -> Made: ...

    async def change(self, exchange_id: str, changes: Mapping[str, Any]) -> Shown: ...

    async def pause(self, exchange_id: str, until_ms: int | None) -> Shown: ...

    async def resume(self, exchange_id: str) -> Shown: ...

    async def unblock(self, exchange_id: str) -> Shown: ...

    async def remove(self, exchange_id: str, *, cascade: bool) -> Shown:
        """With `jobs_removed`."""
        ...


class FleetJobs(Protocol):
    """The work. NotFound for an id that no job has."""

    async def page(self, filters: Filters, limit: int, cursor: str | None = None) -> Shown: ...

    async def with_prefix(self, prefix: str, limit: int) -> list[Shown]: ...

    async def get(self, job_id: str) -> Shown: ...

    async def runs(self, job_id: str, limit: int) -> list[Shown]:
        """The newest first."""
        ...

    async def add(self, request: JobRequest) -> Made: ...

    async def change(self, verb: str, job_id: str) -> Shown:
        """`verb` is pause, resume, run or remove."""
        ...

    async def change_many(self, verb: str, filters: Filters, *, every: bool) -> BulkAnswer: ...


class FleetMarkets(Protocol):
    """What exchanges list, and the series that are kept of them."""

    async def page(
        self,
        exchange_id: str,
        *,
        search: str | None = None,
        active: bool | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Shown: ...

    async def symbols(self, exchange_id: str) -> list[str]: ...

    async def tickers(
        self, exchange_id: str, symbol: str | None, limit: int, cursor: str | None = None
    ) -> Shown: ...

    async def estimate(self, wanted: SeriesRequest) -> Shown:
        """What keeping these series would cost."""
        ...

    async def add(self, wanted: SeriesRequest) -> Shown:
        """`connector`, `connector_created`, `created`, `existing`, `notes`, `symbols_known`."""
        ...


class FleetOverview(Protocol):
    """The state of everything."""

    async def status(self, *, count_now: bool = True) -> Shown: ...

    async def troubles(self) -> list[Shown]: ...

    async def workers(self) -> list[Shown]: ...

    async def report(self, name: str, asked: SeriesFilter) -> Shown:
        """`name` is coverage, missing or validation."""
        ...

    async def now_ms(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Fleet:
    """A collector at hand."""

    connectors: FleetConnectors
    jobs: FleetJobs
    markets: FleetMarkets
    overview: FleetOverview


class RowRange(Protocol):
    """A range of stored rows, inside what there is."""

    @property
    def symbol(self) -> str:
        """As it is stored; it may have been asked for without its slash."""
        ...

    @property
    def from_ms(self) -> int: ...

    @property
    def to_ms(self) -> int: ...

    def first(self, limit: int) -> pa.Table: ...

    def newest(self, limit: int) -> pa.Table: ...

    def all(self) -> AbstractContextManager[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Every row, a batch at a time."""
        ...


class StoredFiles(Protocol):
    """What the files answer, without any database. Waits for the disk or the network."""

    def candles(self, asked: CandlesAsked) -> RowRange: ...

    def trades(self, asked: TradesAsked) -> RowRange: ...

    def quarantine(
        self,
        exchange_id: str,
        symbol: str | None,
        timeframe: str | None,
        limit: int,
        cursor: str | None,
    ) -> Shown: ...

    def market_rate(self, pair: PairName, mode: Mode, asked: PairRange) -> Shown: ...

    def volume(self, pair: PairName, asked: PairRange) -> Shown: ...


@dataclass(frozen=True, slots=True)
class PairName:
    """A pair of a network; base and quote are written NET:TOKEN."""

    network: str
    base: str
    quote: str


@dataclass(frozen=True, slots=True)
class PairRange:
    """Which part of a pair's history. Moments are epoch ms."""

    start_ms: int | None = None
    end_ms: int | None = None
    bucket: int | None = None
    fill: bool = False
    limit: int | None = None
    cursor: str | None = None
