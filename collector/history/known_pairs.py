"""Which pairs a network has traded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.history.bucket_files import BucketFiles, Manifest
from collector.history.layout import buckets_folder, ledger_folder
from collector.history.ledger_files import LedgerFiles
from collector.history.segment import parse_pair

if TYPE_CHECKING:
    from collector.history.pair import Pair
    from collector.store.port import Storage


@dataclass(frozen=True, slots=True)
class KnownPairs:
    """The pairs of one network by name, and how long its buckets are."""

    network: str
    bucket_sec: int
    pairs: tuple[Pair, ...]


def known_pairs(storage: Storage, network: str, bucket_sec: int) -> KnownPairs:
    """From the saved buckets and what the ledger has since. Waits for the disk.

    `bucket_sec` is for a network whose saved buckets are lost.
    """
    files = BucketFiles(storage, buckets_folder(network))
    manifest = files.sound_manifest() or Manifest(bucket_sec)
    since = manifest.applied_through
    ledger = LedgerFiles(storage, ledger_folder(network)).view(at_least=since)
    found = set(manifest.last_prices)
    for _, table in ledger.since(since):
        found |= {parse_pair(name) for name in table["pair"].unique().to_pylist()}
    return KnownPairs(network, manifest.bucket_sec, tuple(sorted(found, key=str)))
