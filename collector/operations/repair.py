"""Damaged files set aside, what is left of them kept, and the rest fetched again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.errors import NotFound
from collector.history.inbox import EventInbox
from collector.history.layout import stored_networks
from collector.history.repair import repair_network
from collector.jobs import types
from collector.jobs.claims import claimed, lost
from collector.jobs.cursor import Cursor
from collector.jobs.network import place_of
from collector.jobs.queue import JobQueue
from collector.market.timeframe import Timeframe
from collector.markets.book import MarketBook
from collector.operations import connected_jobs, connectors
from collector.operations.connectors import check_exchange
from collector.operations.opened_database import opened_database
from collector.operations.tickers import stored_symbols, wants_all
from collector.store.copies import Copies
from collector.store.port import Corrupt
from collector.store.repair import Damage, repair, repair_groups
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.history.repair import LostEvents
    from collector.jobs.job import JobSpec
    from collector.market.interval import Interval
    from collector.market.series import Series
    from collector.mongo.client import Database
    from collector.operations.deployment import Deployment
    from collector.settings import Settings


@dataclass(frozen=True, slots=True)
class Fetching:
    """A range of a series that a job fetches again."""

    symbol: str | None
    timeframe: str | None
    from_ms: int
    to_ms: int | None


@dataclass(frozen=True, slots=True)
class Repaired:
    """What was found, and what has to be fetched."""

    exchange_id: str
    symbols: Sequence[str]
    damages: Sequence[Damage]
    fetching: Sequence[Fetching]
    unlisted: Sequence[str]
    """Symbols of which something is lost and which the exchange no longer has."""
    dry_run: bool
    lost_events: Sequence[LostEvents]
    """Events of networks that are lost, and may be sent again."""


async def repaired(
    where: Deployment, names: Sequence[str], exchange: str | None, *, dry_run: bool
) -> Repaired:
    """Repairs the files of some symbols and creates the jobs that fetch what cannot be rebuilt."""
    settings = where.settings
    exchange_id = check_exchange(exchange or settings.api.adapter)
    longer = tuple(Timeframe.parse(name) for name in settings.resample.tfs)
    store = Store(settings.data_root, copies=Copies(longer, settings.storage.tail_days))
    async with opened_database(where, "datalayer repair") as database:
        networks = await asyncio.to_thread(stored_networks, store.storage)
        try:
            symbols = await _symbols(database, store, exchange_id, names)
        except NotFound:
            if exchange is not None or not networks or not wants_all(names):
                raise
            symbols = []  # Trade history alone.
        damages = await asyncio.to_thread(_files, store, exchange_id, symbols, dry_run)
        specs, unlisted = await _lost(database, store, exchange_id, symbols, damages)
        if specs and not dry_run:
            await _fetch(database, settings, exchange_id, specs)
        of_networks, events = await _networks(database, store, networks, dry_run=dry_run)
    fetching = [_fetching(spec) for spec in specs]
    damages += of_networks
    return Repaired(exchange_id, symbols, damages, fetching, unlisted, dry_run, events)


async def _networks(
    database: Database, store: Store, networks: Sequence[str], *, dry_run: bool
) -> tuple[list[Damage], list[LostEvents]]:
    """Repairs the files of every network; lost events may be sent again."""
    damaged: list[Damage] = []
    lost: list[LostEvents] = []
    for network in networks:
        found, events = await asyncio.to_thread(
            repair_network, store.storage, network, dry_run=dry_run
        )
        damaged += found
        lost += events
        if dry_run:
            continue
        inbox = EventInbox(database, network)
        for each in events:
            await inbox.forget(each.first, each.last)
        await inbox.clear_damage()
        if found or events:
            queue = JobQueue(database)
            for job in await queue.find({"exchange_id": place_of(network)}):
                await queue.run(job.id)
    return damaged, lost


def _fetching(spec: JobSpec) -> Fetching:
    at = Cursor.from_document(spec.cursor.to_document())
    return Fetching(spec.symbol, spec.timeframe, at.since_ms, at.until_ms)


async def _symbols(
    database: Database, store: Store, exchange_id: str, names: Sequence[str]
) -> list[str]:
    """Those with files or jobs: a folder that was deleted has jobs left."""
    stored = await asyncio.to_thread(store.series, exchange_id)
    filters = {"exchange_id": exchange_id, "type": types.OHLCV_BACKFILL.name}
    jobs = await JobQueue(database).find(filters, limit=100_000)
    known = {each.symbol for each in stored} | {str(job.symbol) for job in jobs}
    return stored_symbols(names, exchange_id, known)


def _files(store: Store, exchange_id: str, symbols: Sequence[str], dry_run: bool) -> list[Damage]:
    found = repair_groups(store, exchange_id, dry_run=dry_run)
    for symbol in symbols:
        found += repair(store, exchange_id, symbol, dry_run=dry_run)
    return found


async def _lost(
    database: Database,
    store: Store,
    exchange_id: str,
    symbols: Sequence[str],
    damages: Sequence[Damage],
) -> tuple[tuple[JobSpec, ...], list[str]]:
    claims: dict[Series, list[Interval]] = {
        series: [claim] for series, claim in (await claimed(database, exchange_id, symbols)).items()
    }
    for damage in damages:
        if damage.series is not None and damage.claimed:
            claims.setdefault(damage.series, []).extend(damage.claimed)
    covered = await asyncio.to_thread(_covered, store, list(claims))
    readable = {series: claims[series] for series in covered}
    specs = await lost(database, exchange_id, readable, covered)
    book = MarketBook(database)
    gone = [
        symbol
        for symbol in sorted({str(spec.symbol) for spec in specs})
        if not await book.is_listed(exchange_id, symbol)
    ]
    return tuple(spec for spec in specs if spec.symbol not in gone), gone


def _covered(store: Store, series: Sequence[Series]) -> dict[Series, tuple[Interval, ...]]:
    """What the lake holds. For a damaged series it is unknown before the repair."""
    found = {}
    for each in series:
        with suppress(Corrupt):
            found[each] = store.covered(each)
    return found


async def _fetch(
    database: Database, settings: Settings, exchange_id: str, specs: Sequence[JobSpec]
) -> None:
    figures = {"max_concurrent_jobs": settings.api.max_concurrent}
    await connectors.ensure(database, exchange_id, figures)
    await connected_jobs.add(database, specs)
