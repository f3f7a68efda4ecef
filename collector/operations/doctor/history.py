"""Trade history: whether its files are what was written, as many as a few seconds allow."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from collector.errors import CollectorError
from collector.history.layout import stored_networks
from collector.history.repair import damaged_files, lost_events
from collector.operations.doctor.finding import Finding, ok, problem, warning
from collector.store.root import storage_at

if TYPE_CHECKING:
    from collector.settings import Settings

AREA = "history"
LOOK_SECONDS = 5.0
_NAMED = 3


def history(settings: Settings) -> Finding:
    """Compares digests of every network's files, ledger and buckets."""
    give_up_at = time.monotonic() + LOOK_SECONDS
    wrong: list[str] = []
    networks: tuple[str, ...] = ()
    looked = 0
    try:
        storage = storage_at(settings.data_root)
        networks = stored_networks(storage)
        for network in networks:
            lost = lost_events(storage, network)
            wrong += [f"{network}: events {each.first} to {each.last} are lost" for each in lost]
            for each in damaged_files(storage, network):
                looked += 1
                if each is not None:
                    wrong.append(f"{each.path} ({each.why})")
                if time.monotonic() > give_up_at:
                    break
    except CollectorError as error:
        return warning(AREA, f"not checked: {error}")
    if wrong:
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        words = f"damaged: {'; '.join(wrong[:_NAMED])}{more}"
        return problem(
            AREA, words, "collector repair: it names the events that have to be sent again"
        )
    if not networks:
        return ok(AREA, "nothing is stored yet")
    words = f"{looked:,} files of {len(networks):,} networks are sound"
    if time.monotonic() > give_up_at:
        return warning(AREA, f"{words}; time was up", "collector repair --dry-run reads all")
    return ok(AREA, words)
