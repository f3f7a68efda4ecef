"""New sightings over bars that were folded before: only bars with a new sighting are folded.

Other bars keep the version they have, so the older versions of a bar are needed only when a bar
that has some is seen again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collector.pipeline.fold import BarVersions, Sightings, Versions, fold

if TYPE_CHECKING:
    from numpy.typing import NDArray


def needs_older(folded: Versions, fresh: Sightings) -> bool:
    """Whether a bar with older versions is seen again."""
    return bool((folded.ver[np.isin(folded.rows.batch.ts, fresh.batch.ts)] > 1).any())


def overlay(folded: Versions, older: Versions, fresh: Sightings) -> Versions:
    """The bars as they are now, ascending. `older` may be empty unless `needs_older`."""
    again = np.isin(folded.rows.batch.ts, fresh.batch.ts)
    replaced = older.rows.take(np.isin(older.rows.batch.ts, fresh.batch.ts))
    current = fold(Sightings.concat([folded.rows.take(again), replaced, fresh])).current
    return _joined(Versions(folded.rows.take(~again), folded.ver[~again]), current)


def without_orphans(history: BarVersions, held: NDArray[np.int64]) -> BarVersions:
    """Bars whose time is not in `held` are moved to the older versions.

    Of these only replaced versions are left: the bar itself was lost.
    """
    current = history.current
    kept = np.isin(current.rows.batch.ts, held)
    if kept.all():
        return history
    orphans = Versions(current.rows.take(~kept), current.ver[~kept])
    return BarVersions(
        current=Versions(current.rows.take(kept), current.ver[kept]),
        older=_joined(history.older, orphans),
    )


def _joined(one: Versions, other: Versions) -> Versions:
    rows = Sightings.concat([one.rows, other.rows])
    order = np.argsort(rows.batch.ts, kind="stable")
    return Versions(rows.take(order), np.concatenate([one.ver, other.ver])[order])
