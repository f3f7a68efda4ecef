"""Which series there are: those with a sealed file, and those that only parts hold."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from collector.market.series import Series
from collector.market.symbol import name_to_symbol, symbol_to_name
from collector.market.timeframe import Timeframe
from collector.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.store.port import Storage
    from collector.store.shelf import Shelf


def stored_exchanges(storage: Storage) -> list[str]:
    """The folders of exchanges: what begins with an underscore is something else."""
    return [name for name in storage.folders("") if not name.startswith("_")]


def folder_symbols(storage: Storage, exchange_id: str) -> Iterator[str]:
    """The symbols of an exchange that have a folder; those of group parts alone have none."""
    for folder in storage.folders(exchange_id):
        # Folders that are not ours are no symbols.
        with contextlib.suppress(ValueError):
            yield name_to_symbol(folder)


def stored_series(
    storage: Storage, shelf: Shelf, exchange_id: str | None = None
) -> tuple[Series, ...]:
    """Every series with a file or a part, in a fixed order."""
    exchanges = stored_exchanges(storage) if exchange_id is None else [exchange_id]
    found: set[Series] = set()
    for exchange in exchanges:
        for symbol, timeframe in _keys(storage, shelf, exchange):
            # Folders that are not ours are no series.
            with contextlib.suppress(ValueError):
                found.add(Series.of(exchange, symbol, timeframe))
    return tuple(sorted(found, key=lambda s: (s.exchange_id, s.symbol, s.timeframe)))


def stored_timeframes(
    storage: Storage, shelf: Shelf, exchange_id: str, symbol: str
) -> tuple[Timeframe, ...]:
    """The timeframes of a symbol that have a file or a part, the shortest first.

    Lists the group parts of the exchange.
    """
    index = shelf.index(exchange_id)
    index.refresh()
    names = index.timeframes(symbol)
    names |= set(_in_folder(storage, f"{exchange_id}/{symbol_to_name(symbol)}"))
    found: set[Timeframe] = set()
    for name in names:
        # A file that is not ours.
        with contextlib.suppress(ValueError):
            found.add(Timeframe.parse(name).at(exchange_id, symbol))
    return tuple(sorted(found))


def _keys(storage: Storage, shelf: Shelf, exchange_id: str) -> Iterator[tuple[str, str]]:
    # Group parts first: what is sealed and swept meanwhile is then found in a folder.
    index = shelf.index(exchange_id)
    index.refresh()
    yield from index.keys()
    for symbol in folder_symbols(storage, exchange_id):
        folder = f"{exchange_id}/{symbol_to_name(symbol)}"
        yield from ((symbol, tf) for tf in _in_folder(storage, folder))


def _in_folder(storage: Storage, folder: str) -> Iterator[str]:
    """The timeframes that have a part or a sealed file in a symbol's own folder."""
    for name in storage.folders(f"{folder}/parts"):
        tf = layout.parse_timeframe(name)
        if tf is not None and storage.names(f"{folder}/parts/{name}"):
            yield tf
    sealed = map(layout.parse_sealed, storage.names(folder))
    yield from (tf for tf in sealed if tf is not None)
