"""What the ledger has of some transactions, for processes that accept events and write no files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.history.bucket_files import BucketFiles
from collector.history.layout import buckets_folder, ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.lookup import known_inputs
from collector.store.port import Swapped, Vanished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.history.event import Event
    from collector.history.lookup import Known
    from collector.store.port import Storage

_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class KnownTrades:
    """The ledger's head, the buckets that windows are cut by, and what is known by input."""

    head: int
    bucket_ms: int
    inputs: Mapping[tuple[str, int, int], Known]


class LedgerLookup:
    """Looks into one network's ledger; small segments stay in memory."""

    def __init__(self, storage: Storage, network: str, *, bucket_sec: int) -> None:
        """`bucket_sec` is for a network that has no files yet."""
        self._buckets = BucketFiles(storage, buckets_folder(network))
        self._ledger = LedgerFiles(storage, ledger_folder(network))
        self._network = network
        self._bucket_sec = bucket_sec

    def known(self, events: Sequence[Event]) -> KnownTrades:
        for _ in range(_ATTEMPTS):
            manifest = self._buckets.manifest()
            bucket_ms = 1000 * (manifest.bucket_sec if manifest else self._bucket_sec)
            try:
                ledger = self._ledger.view()
                return KnownTrades(ledger.head, bucket_ms, known_inputs(ledger, bucket_ms, events))
            except Vanished:
                continue  # Merged away: another look finds the longer one.
        raise Swapped(f"{self._network}: files are replaced faster than they can be read")
