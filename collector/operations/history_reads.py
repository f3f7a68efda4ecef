"""Queries of trade history: which pair is meant, and whether enough events were applied."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from collector.errors import InvalidInput
from collector.history.inbox import EventInbox
from collector.history.pair import Asset, Pair
from collector.history.reader import HistoryReader
from collector.history.refusal import HistoryDamaged, NotApplied, Refused
from collector.operations.history_events import check_network

if TYPE_CHECKING:
    from collector.history.terms import HistoryTerms
    from collector.mongo.client import Database
    from collector.store.port import Corrupt
    from collector.store.store import Store

MOST_READERS = 64
"""Pairs whose buckets stay in memory."""
PATIENCE_SECONDS = 5.0
_LOOK_SECONDS = 0.02


def known_pair(base: str, quote: str) -> Pair:
    """The pair as it was named. InvalidInput names the canonical one when it is reversed."""
    assets = []
    for field, text in (("base", base), ("quote", quote)):
        try:
            assets.append(Asset.parse(text))
        except Refused as error:
            raise InvalidInput(field, "bad_asset", str(error)) from None
    try:
        pair = Pair.between(*assets)
    except Refused as error:
        raise InvalidInput("quote", "bad_pair", str(error)) from None
    if pair.base != assets[0]:
        reason = f"{base}/{quote} is reversed: the canonical pair is {pair}"
        raise InvalidInput("base", "reversed_pair", reason)
    return pair


class HistoryReads:
    """The readers of one process. They follow the files, and need no writer."""

    def __init__(self, database: Database, store: Store, terms: HistoryTerms) -> None:
        self._database = database
        self._store = store
        self._terms = terms
        self._readers: OrderedDict[tuple[str, Pair], HistoryReader] = OrderedDict()

    def reader(self, network: str, base: str, quote: str) -> HistoryReader:
        """InvalidInput for a network or a pair that cannot be."""
        key = check_network(network, self._terms), known_pair(base, quote)
        if key not in self._readers:
            pair = key[1]
            self._readers[key] = HistoryReader(
                network,
                pair.base,
                pair.quote,
                self._store.storage,
                cache=self._terms.cache,
                bucket_sec=self._terms.bucket_sec,
            )
            while len(self._readers) > MOST_READERS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(key)
        return self._readers[key]

    async def damaged(self, network: str, error: Corrupt) -> HistoryDamaged:
        """Records what a reader met; the error for whoever asked."""
        await EventInbox(self._database, network).report_damage(error.path, error.why)
        return HistoryDamaged(
            f"{network}: a file of its history is damaged; `collector repair` sets it aside and"
            " names the events that are lost"
        )

    async def reach(self, network: str, sequence: int) -> None:
        """Returns when every event up to `sequence` is in the ledger. Raises NotApplied.

        InvalidInput for a sequence that no event was given yet: nobody could be waiting for it.
        """
        inbox = EventInbox(self._database, network)
        given = (await inbox.state()).sequence
        if sequence > given:
            reason = f"the last event of {network} is {given}"
            raise InvalidInput("after", "unknown_sequence", reason)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (await inbox.state()).applied_through < sequence:
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise NotApplied(
                f"{network}: event {sequence} was not applied within {PATIENCE_SECONDS:g} s"
            ) from None
