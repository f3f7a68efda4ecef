"""Series to keep: creates everything that keeps them complete and up to date."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from collector.jobs.stream import stream_jobs
from collector.operations import connectors, requested_history
from collector.operations.market_names import check_bars
from collector.operations.new_job import check_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.jobs.job import Job
    from collector.mongo.client import Database
    from collector.operations.connectors import Ensured
    from collector.operations.market_names import MarketNames
    from collector.operations.requested_history import RequestedJob


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """Every symbol in every timeframe. `since` None means from the first bar.

    A symbol may be a pattern such as `*/USDT`, or written without its slash.
    """

    exchange_id: str
    symbols: Sequence[str]
    timeframes: Sequence[str]
    since: int | None = None
    backfill: bool = True


@dataclass(frozen=True, slots=True)
class Kept:
    """The jobs of the series. `is_known` is False when the symbols are not known yet."""

    requested: Sequence[RequestedJob]
    is_known: bool

    @property
    def jobs(self) -> list[tuple[Job, bool]]:
        """Each with whether it was created."""
        return [(each.job, each.made) for each in self.requested]

    @property
    def notes(self) -> list[str]:
        """What became of a beginning that differs from what the series had."""
        return [each.note for each in self.requested if each.note is not None]


async def keep_series(database: Database, wanted: SeriesRequest, names: MarketNames) -> Kept:
    """The jobs that keep the series, created where they are missing. All names are checked first.

    InvalidInput for an exchange without a connector, and for names that do not exist.
    """
    await connectors.check_connector(database, wanted.exchange_id)
    symbols, is_known = await _check(database, wanted, names)
    return Kept(await _made(database, wanted, symbols), is_known)


async def add_series(
    database: Database, wanted: SeriesRequest, names: MarketNames
) -> tuple[Ensured, Kept]:
    """The same, with a connector created when there is none, and only when all names are valid."""
    connectors.check_exchange(wanted.exchange_id)
    symbols, is_known = await _check(database, wanted, names)
    ensured = await connectors.ensure(database, wanted.exchange_id)
    return ensured, Kept(await _made(database, wanted, symbols), is_known)


async def _check(
    database: Database, wanted: SeriesRequest, names: MarketNames
) -> tuple[list[str], bool]:
    """The symbols that are meant, and whether they are known."""
    check_range(wanted.since, None, await database.now_ms())
    await check_bars(wanted.exchange_id)
    fields = ("symbols", "timeframes")
    symbols = await names.meant(wanted.exchange_id, wanted.symbols, field=fields[0])
    known = await names.check_series(wanted.exchange_id, symbols, wanted.timeframes, fields=fields)
    return symbols, known


async def _made(
    database: Database, wanted: SeriesRequest, symbols: Sequence[str]
) -> list[RequestedJob]:
    now_ms = await database.now_ms()
    each = product(dict.fromkeys(symbols), dict.fromkeys(wanted.timeframes))
    specs = [
        spec
        for symbol, timeframe in each
        for spec in stream_jobs(
            wanted.exchange_id,
            symbol,
            timeframe,
            now_ms=now_ms,
            since_ms=wanted.since or 0,
            backfill=wanted.backfill,
        )
    ]
    return await requested_history.add(database, specs, since_is_given=wanted.since is not None)
