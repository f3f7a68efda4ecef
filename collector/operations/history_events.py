"""Accepts events of a network, and wakes the job that applies them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from collector import logs
from collector.durations import DAY_MS
from collector.errors import InvalidInput
from collector.history.inbox import EventInbox
from collector.history.layout import ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.sources import BadEvent
from collector.jobs import types
from collector.jobs.job import JobSpec
from collector.jobs.network import place_of
from collector.jobs.queue import JobQueue
from collector.jobs.run_now import run_soon
from collector.market.near import near

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.history.event import Event
    from collector.history.inbox import Receipt
    from collector.history.sources import EventSource
    from collector.history.terms import HistoryTerms
    from collector.mongo.client import Database
    from collector.store.store import Store

_log = logs.get("collector.history")


def check_network(network: str, terms: HistoryTerms) -> str:
    """The network itself. InvalidInput names similar ones."""
    if network in terms.networks:
        return network
    like = near(network, terms.networks)
    reason = f"there is no network {network!r}"
    if not like:
        reason += f"; `history.networks` has {', '.join(terms.networks) or 'none'}"
    raise InvalidInput("network", "unknown_network", reason, like)


class EventIntake:
    """Accepts events for the networks in the settings."""

    def __init__(self, database: Database, store: Store, terms: HistoryTerms) -> None:
        self._database = database
        self._terms = terms
        self._ledgers = {
            network: LedgerFiles(store.storage, ledger_folder(network))
            for network in terms.networks
        }

    async def take(self, network: str, source: EventSource) -> Receipt:
        """Gives the source's events their sequences. They are durable when it returns."""
        ledger = self._ledgers[check_network(network, self._terms)]
        events = await asyncio.to_thread(source.events)
        await self._check_times(events)
        receipt = await EventInbox(self._database, network).put(events, ledger.view)
        if receipt.accepted:
            job = apply_job(network)
            if not await run_soon(self._database, {"unique_key": job.unique_key}):
                await JobQueue(self._database).add(job)
        _log.debug(
            "history_events_taken",
            network=network,
            sequence=receipt.sequence,
            accepted=receipt.accepted,
            duplicates=receipt.duplicates,
        )
        return receipt

    async def _check_times(self, events: Sequence[Event]) -> None:
        """Refuses times far ahead of the server's clock: nobody would ever read such a trade."""
        latest_ms = await self._database.now_ms() + DAY_MS
        for at, event in enumerate(events):
            if event.ts > latest_ms:
                reason = f"ts {event.ts} is more than a day ahead of the server's clock"
                raise BadEvent(at, f"{event.tx_hash}: {reason}, in epoch milliseconds")


def apply_job(network: str) -> JobSpec:
    """The job that applies a network's events."""
    return JobSpec(place_of(network), types.HISTORY_APPLY.name)


async def ensure_apply_jobs(database: Database, terms: HistoryTerms) -> None:
    """Every network has its job, also one that waits for no events but for longer buckets."""
    for network in terms.networks:
        await JobQueue(database).add(apply_job(network))
