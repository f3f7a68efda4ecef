"""Finds the damaged files of a symbol by reading all of them, sets them aside and rebuilds.

What is left of a damaged file becomes parts (salvage.py); copies are made again from their source.
Nothing is deleted: a damaged file keeps its bytes under another name. Every swap names the file
that was read, so a repair may run beside workers, and a second one finds nothing to do.
"""

from __future__ import annotations

import itertools
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from collector import logs
from collector.market.series import Series
from collector.market.timeframe import MINUTE
from collector.store import inventory
from collector.store.port import Corrupt, Swapped, Vanished
from collector.store.salvage import Salvage, Salvaged
from collector.store.segment import SEGMENT_SCHEMA
from collector.store.trade_day import append_rows, sound_trades

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from collector.market.interval import Interval
    from collector.store.inventory import StoredFile
    from collector.store.store import Store

log = logs.get("collector.store")

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file, and what was done with it."""

    path: str
    kind: str
    why: str
    series: Series | None = None
    aside: str | None = None
    """Its new name; None when nothing was changed."""
    rows: int = 0
    """Rows that were recovered from it, or for it, and are kept."""
    claimed: tuple[Interval, ...] = ()
    """What it covered, as far as that is known."""


def repair(store: Store, exchange_id: str, symbol: str, *, dry_run: bool = False) -> list[Damage]:
    """Everything damaged of one symbol. Raises Unavailable when the medium fails."""
    found = []
    for entry in inventory.of_symbol(store.storage, exchange_id, symbol):
        damage = _handled(store, entry, dry_run)
        if damage is not None:
            found.append(damage)
    if not dry_run:
        _rebuild(store, exchange_id, symbol)
        for damage in found:
            if damage.kind == "whole" and damage.series is not None:
                store.write_whole(damage.series)
    return found


def repair_groups(store: Store, exchange_id: str, *, dry_run: bool = False) -> list[Damage]:
    """The damaged group parts of an exchange, which hold bars of many symbols."""
    entries = inventory.of_groups(store.storage, exchange_id)
    return [each for entry in entries if (each := _handled(store, entry, dry_run)) is not None]


def _handled(store: Store, entry: StoredFile, dry_run: bool) -> Damage | None:
    for _ in range(_ATTEMPTS):
        stamp = store.storage.stamp(entry.path)
        if stamp is None:
            return None
        try:
            entry.check()
        except Vanished:
            continue
        except Corrupt as error:
            if store.storage.stamp(entry.path) != stamp:
                continue
            damage = Damage(entry.path, entry.kind, error.why, entry.series, claimed=entry.claimed)
            if dry_run:
                return damage
            with suppress(Swapped, Vanished):
                return _set_aside(store, entry, stamp, damage)
            continue
        return None
    raise Swapped(f"{entry.path} keeps being replaced by others")


def _set_aside(store: Store, entry: StoredFile, stamp: str, damage: Damage) -> Damage:
    kept = _salvaged(store, entry)
    trades = None
    if entry.day is not None:
        trades = sound_trades(store.storage, entry.day)
    aside = store.storage.set_aside(entry.path, stamp)
    if entry.day is not None and trades is not None and len(trades):
        append_rows(store.storage, entry.day, trades)
        kept = Salvaged(len(trades))
    log.error("file_set_aside", path=aside, kind=entry.kind, why=damage.why, rows=kept.rows)
    claimed = kept.claimed or damage.claimed
    return replace(damage, aside=aside, rows=kept.rows, claimed=claimed)


def _salvaged(store: Store, entry: StoredFile) -> Salvaged:
    if entry.series is None or entry.kind not in ("sealed", "versions"):
        return Salvaged()
    word, count = secrets.token_hex(8), itertools.count()
    salvage = Salvage(store.storage, entry.series, lambda: f"{word}{next(count):06x}")
    if entry.kind == "sealed":
        return salvage.of_sealed()
    series = entry.series

    def held(from_ms: int, to_ms: int) -> NDArray[np.int64]:
        try:
            table = store.rows(series, from_ms, to_ms, columns=SEGMENT_SCHEMA.names)
        except Corrupt:
            # A part may repeat bars whose older versions are in this very file.
            table = SEGMENT_SCHEMA.empty_table()
        times: NDArray[np.int64] = table["ts"].to_numpy()[table["known_at"].is_valid().to_numpy()]
        return times

    return Salvaged(salvage.of_versions(held))


def _rebuild(store: Store, exchange_id: str, symbol: str) -> None:
    """Merges what was kept, and makes checksums, longer bars and the tail again."""
    mine = [each for each in store.series(exchange_id) if each.symbol == symbol]
    for series in mine:
        if store.holds(series):
            for _ in range(_ATTEMPTS):
                with suppress(Swapped):
                    store.compact(series)
                    break
    minutes = Series(exchange_id, symbol, MINUTE)
    if minutes in mine:
        store.refresh_tail(minutes)
