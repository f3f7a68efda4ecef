"""Damaged files of a network: found by reading all of them, and mended as far as that is possible.

Buckets are discarded, because they can be made again from the ledger. A damaged segment is set
aside, and the sequences that no other segment has are lost: an empty segment answers for them, so
that the network goes on, and buckets are made again without them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector import logs
from collector.history.bucket_files import CURRENT, MISSING, NEXT, BucketFiles, Manifest
from collector.history.layout import buckets_folder, check_digest, ledger_folder, shortened
from collector.history.segment import LEDGER_SCHEMA, encode, parse_segment
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.repair import Damage

if TYPE_CHECKING:
    from collections.abc import Iterator, Set

    from collector.store.port import Storage

log = logs.get("collector.store")

SEGMENT, BUCKETS = "segment", "buckets"
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class LostEvents:
    """Sequences that no segment has any more, both ends included."""

    network: str
    first: int
    last: int


def damaged_files(storage: Storage, network: str) -> Iterator[Damage | None]:
    """Reads every file; gives None for each that is sound, so that a caller may stop anywhere."""
    files, folder = BucketFiles(storage, buckets_folder(network)), ledger_folder(network)
    for name in (CURRENT, NEXT):
        try:
            manifest = files.manifest(name)
        except Corrupt as error:
            yield Damage(error.path, BUCKETS, error.why)
            continue
        for path in sorted(manifest.paths()) if manifest else ():
            why = _fault(storage, f"{files.folder}/{path}")
            if why == MISSING and not files.is_missing(path):
                why = None
            yield Damage(f"{files.folder}/{path}", BUCKETS, why) if why else None
        yield None
    for name in storage.names(folder):
        if parse_segment(folder, name) is not None:
            why = _fault(storage, f"{folder}/{name}")
            merged = why == MISSING
            yield Damage(f"{folder}/{name}", SEGMENT, why) if why and not merged else None


def _fault(storage: Storage, path: str) -> str | None:
    try:
        check_digest(path, shortened(storage.sha256(path)))
    except Corrupt as error:
        return error.why
    except Vanished:
        return MISSING
    return None


def lost_events(
    storage: Storage, network: str, damaged: Set[str] = frozenset()
) -> list[LostEvents]:
    """Sequences that are in no segment, or only in damaged ones."""
    found = _lost(storage, network, damaged)
    for _ in range(_ATTEMPTS):
        # A listing that races with a merge may lack both the short segments and the long one.
        again = _lost(storage, network, damaged) if found else []
        if again == found:
            break
        found = again
    return found


def _lost(storage: Storage, network: str, damaged: Set[str]) -> list[LostEvents]:
    folder = ledger_folder(network)
    named = [parse_segment(folder, name) for name in storage.names(folder)]
    segments = sorted((each.first, each.last, each.path) for each in named if each is not None)
    saved = BucketFiles(storage, buckets_folder(network)).sound_manifest()
    end = max([saved.applied_through if saved else 0, *(last for _, last, _ in segments)])
    lost, through = [], 0
    for first, last, path in [*segments, (end + 1, end + 1, "")]:
        if path in damaged:
            continue
        if first > through + 1:
            lost.append(LostEvents(network, through + 1, first - 1))
        through = max(through, last)
    return lost


def repair_network(
    storage: Storage, network: str, *, dry_run: bool = False
) -> tuple[list[Damage], list[LostEvents]]:
    """Mends what is damaged. May run beside the network's worker, which opens its files again."""
    damaged = [each for each in damaged_files(storage, network) if each is not None]
    lost = lost_events(storage, network, {each.path for each in damaged if each.kind == SEGMENT})
    if dry_run or not (damaged or lost):
        return damaged, lost
    for each in lost:
        folder = ledger_folder(network)
        segment, data = encode(folder, each.first, each.last, LEDGER_SCHEMA.empty_table())
        storage.write_atomic(segment.path, data)
        log.error("history_events_lost", network=network, first=each.first, last=each.last)
    done = [_removed(storage, each) for each in damaged]
    _discard(BucketFiles(storage, buckets_folder(network)))
    return done, lost


def _removed(storage: Storage, damaged: Damage) -> Damage:
    if damaged.kind == BUCKETS:
        storage.delete(damaged.path)
        return damaged
    with suppress(Vanished):
        aside = storage.set_aside(damaged.path)
        log.error("file_set_aside", path=aside, kind=damaged.kind, why=damaged.why, rows=0)
        return replace(damaged, aside=aside)
    return damaged


def _discard(files: BucketFiles) -> None:
    """Leaves no buckets. Workers and readers notice that the document is another, and look again.

    All of them, whatever is damaged: in an object store only other content is another document.
    """
    for _ in range(_ATTEMPTS):
        stamp, manifest = files.stamp(), files.sound_manifest()
        if manifest is None:
            return
        with suppress(Swapped):
            files.write(Manifest(manifest.bucket_sec, fence=manifest.fence), stamp)
            return
    raise Swapped(f"{files.folder} keeps being replaced by others")
