"""Buckets of another length, made from the ledger a month at a time.

The new buckets are those of the ledger up to one sequence, the head when building began. Reads and
writes go on with the old ones meanwhile. `next.json` records how far building has come, so it
continues there after a crash. When all months are made, the document takes the place of the current
one, and what came since is caught up with as after any save.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector.history.bucket_files import NEXT, BucketFiles, Manifest
from collector.history.month import Month, month_of
from collector.history.replay import month_of_ledger
from collector.store.port import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.history.ledger import Ledger
    from collector.history.pair import Pair


def wanted(files: BucketFiles, current: Manifest, bucket_sec: int) -> Manifest | None:
    """What is being built. What is no longer wanted, or is in place already, is dropped."""
    found = files.sound_manifest(NEXT)
    if found is not None and bucket_sec == found.bucket_sec != current.bucket_sec:
        return found
    if found is not None:
        files.delete([NEXT])
    return None


def begun(
    files: BucketFiles, bucket_sec: int, applied_through: int, last_prices: Mapping[Pair, int]
) -> Manifest:
    """What is being built: what was found half built, else a beginning."""
    found = files.sound_manifest(NEXT)
    if found is not None and found.bucket_sec == bucket_sec:
        return found
    made = Manifest(bucket_sec, applied_through, {}, dict(last_prices), built_to=0)
    files.write(made, files.stamp(NEXT), NEXT)
    return made


def step(files: BucketFiles, ledger: Ledger, building: Manifest) -> Manifest:
    """Builds the next month that has trades; `built_to` is None when there is none left."""
    past, bucket_ms = ledger.through(building.applied_through), building.bucket_sec * 1000
    first, end = past.span or (0, 0)
    assert building.built_to is not None
    # The bucket of the earliest trade may begin in the month before.
    begin = max(month_of(first - first % bucket_ms), building.built_to)
    for month in range(begin, month_of(end) + 1):
        made = month_of_ledger(past, month, bucket_ms)
        if made:
            months = {(pair, month): Month.of(columns) for pair, columns in made.items()}
            named = files.with_months(building, months, building.applied_through)
            following = replace(named, built_to=month + 1)
            files.write(following, files.stamp(NEXT), NEXT)
            return following
    return replace(building, built_to=None)


def put_in_place(files: BucketFiles, building: Manifest, expected: str | None) -> None:
    """The built buckets are the current ones from now on. Raises Swapped if a save came between."""
    if building.built_to is not None:
        raise Unavailable("the new buckets are not whole yet")
    old = files.sound_manifest()
    files.write(building, expected)
    files.delete([NEXT])
    if old is not None:
        files.delete(old.paths() - building.paths())
