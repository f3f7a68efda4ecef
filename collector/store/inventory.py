"""Every file of a symbol or an exchange, each with the way to check the whole of it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from collector.market.series import Series
from collector.market.symbol import checked_exchange_id, symbol_to_name
from collector.store import layout
from collector.store.checksum import is_of_a_copy
from collector.store.part import read_part
from collector.store.port import Corrupt, Vanished
from collector.store.quarantine import read_quarantine
from collector.store.sealed import Sealed
from collector.store.trade_day import DayFile, day_parts, file_batches, read_day_part
from collector.store.trades import trade_days
from collector.store.verification import check_sealed, check_tail, check_versions
from collector.store.whole import check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.market.interval import Interval
    from collector.store.port import Storage


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file."""

    path: str
    kind: str
    """sealed, copy, whole, tail, versions, part, quarantine or trades."""
    check: Callable[[], object] = field(repr=False)
    """Reads all of it. Raises Vanished or Corrupt."""
    series: Series | None = None
    day: DayFile | None = None
    claimed: tuple[Interval, ...] = ()
    """The time that its name encloses."""


def of_symbol(storage: Storage, exchange_id: str, symbol: str) -> Iterator[StoredFile]:
    """The files of one symbol. The sealed files first: what is merged depends on them."""
    folder = f"{checked_exchange_id(exchange_id)}/{symbol_to_name(symbol)}"

    def named(inside: str, end: str) -> Iterator[tuple[str, Series]]:
        for name in storage.names(f"{folder}{inside}"):
            timeframe = layout.parse_timeframe(name.removesuffix(end))
            if name.endswith(end) and timeframe is not None:  # Else a file that is not ours.
                yield name, Series.of(exchange_id, symbol, timeframe)

    for _, series in named("", ".parquet"):
        yield _sealed(storage, series)
    for _, series in named("/versions", ".parquet"):
        check = partial(check_versions, storage, series)
        yield StoredFile(layout.versions_path(series), "versions", check, series)
    for _, series in named("/tail", ".tail.parquet"):
        yield StoredFile(
            layout.tail_path(series), "tail", partial(check_tail, storage, series), series
        )
    for _, series in named("/whole", ".parquet"):
        check = partial(check_whole, storage, series)
        yield StoredFile(layout.whole_path(series), "whole", check, series)
    for name in storage.folders(f"{folder}/parts"):
        timeframe = layout.parse_timeframe(name)
        if timeframe is not None:
            series = Series.of(exchange_id, symbol, timeframe)
            yield from _parts(storage, layout.pages_folder(series), series)
    for name in storage.names(f"{folder}/quarantine"):
        timeframe = layout.parse_timeframe(name.partition("-")[0])
        if timeframe is not None and name.endswith(".parquet"):
            series = Series.of(exchange_id, symbol, timeframe)
            path = f"{folder}/quarantine/{name}"
            check = partial(read_quarantine, storage, series, path)
            yield StoredFile(path, "quarantine", check, series)
    for day in trade_days(storage, exchange_id, symbol):
        yield from _trades(storage, DayFile.at(exchange_id, symbol, day.from_ms))


def of_groups(storage: Storage, exchange_id: str) -> Iterator[StoredFile]:
    """The group parts of an exchange."""
    return _parts(storage, layout.groups_folder(checked_exchange_id(exchange_id)), None)


def _sealed(storage: Storage, series: Series) -> StoredFile:
    path = layout.sealed_path(series)
    is_copy = is_of_a_copy(storage, series)

    def check() -> None:
        file = Sealed.of(storage, series)
        try:
            check_sealed(storage, series, file)
        finally:
            file.close()

    if not is_copy:
        with suppress(Corrupt, Vanished):
            file = Sealed.of(storage, series)
            is_copy = bool(file.footer.derived_from)
            file.close()
    return StoredFile(path, "copy" if is_copy else "sealed", check, series)


def _parts(storage: Storage, folder: str, series: Series | None) -> Iterator[StoredFile]:
    for name in storage.names(folder):
        part = layout.parse_part(folder, name)
        if part is not None:
            claimed = (part.hull,) if series is not None else ()
            check = partial(_read_part, storage, part.path)
            yield StoredFile(part.path, "part", check, series, claimed=claimed)


def _read_part(storage: Storage, path: str) -> None:
    try:
        read_part(storage, path)
    except Corrupt:
        # Reads again: a temporary fault of the medium must not cost a sound part.
        read_part(storage, path)


def _trades(storage: Storage, day: DayFile) -> Iterator[StoredFile]:
    for part in day_parts(storage, day):
        check = partial(read_day_part, storage, day, part)
        yield StoredFile(part.path, "trades", check, claimed=(part.hull,))
    if storage.stamp(day.path) is not None:
        yield StoredFile(day.path, "trades", partial(_read_day, storage, day), day=day)


def _read_day(storage: Storage, day: DayFile) -> None:
    for _ in file_batches(day, storage.read(day.path)):
        pass
