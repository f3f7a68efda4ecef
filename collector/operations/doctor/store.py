"""The lake: whether its medium answers, and whether footers of its files can be read.

A quick look. `collector repair --dry-run` reads every byte.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.operations.doctor.finding import Finding, ok, problem, warning
from collector.operations.doctor.medium import refusal
from collector.store.address import in_object_store
from collector.store.port import Corrupt, Vanished
from collector.store.root import storage_at
from collector.store.sealed import Sealed
from collector.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.market.series import Series
    from collector.settings import Settings
    from collector.store.port import Storage

AREA = "store"
LOOK_SECONDS = 5.0
_NAMED = 3


def store(settings: Settings) -> list[Finding]:
    """Reads the footers of as many series as a few seconds allow."""
    root = settings.data_root
    try:
        storage = storage_at(root)
        reachable = _object_store(storage, root)
        if reachable is not None and reachable.help:
            return [reachable]
        series = Store(storage).series()
    except CollectorError as error:
        return [problem(AREA, str(error), "correct data and s3_endpoint")]
    return [*([reachable] if reachable else []), _damage(storage, series)]


def _object_store(storage: Storage, root: str) -> Finding | None:
    if not in_object_store(root):
        return None
    where = root.partition("?")[0]
    why = refusal(storage)
    if why is None:
        return ok(AREA, f"{where} takes, gives back and deletes an object")
    helps = "check s3_endpoint, the bucket, and AWS_ACCESS_KEY_ID with its rights"
    return problem(AREA, f"{where} cannot be used: {why}", helps)


def _damage(storage: Storage, series: Sequence[Series]) -> Finding:
    if not series:
        return ok(AREA, "nothing is stored yet")
    give_up_at = time.monotonic() + LOOK_SECONDS
    damaged, looked = [], 0
    for each in series:
        if looked and time.monotonic() > give_up_at:
            break
        looked += 1
        try:
            with suppress(Vanished):  # Only parts so far, or merged meanwhile.
                Sealed.of(storage, each).close()
        except Corrupt as error:
            damaged.append(f"{error.path} ({error.why})")
    if damaged:
        more = f" and {len(damaged) - _NAMED} more" if len(damaged) > _NAMED else ""
        words = f"damaged: {'; '.join(damaged[:_NAMED])}{more}"
        return problem(AREA, words, "collector repair sets it aside and fetches the rest again")
    words = f"footers of {looked:,} of {len(series):,} series are sound"
    if looked < len(series):
        return warning(AREA, f"{words}; time was up", "collector repair --dry-run reads all")
    return ok(AREA, words)
