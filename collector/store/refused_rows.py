"""Lists of refused rows, by exchange, symbol and file, every page from where the last one ended.

A page reads only the files it shows. The place of a row never changes, because its file does not:
rows refused between two pages neither repeat a row nor hide one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from collector import logs
from collector.market.series import Series
from collector.market.symbol import checked_exchange_id, name_to_symbol, symbol_to_name
from collector.market.timeframe import Timeframe
from collector.store.catalogue import stored_exchanges
from collector.store.port import Corrupt, Vanished
from collector.store.quarantine import read_quarantine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.store.port import Storage

_log = logs.get("collector.store")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a row is: its exchange, its symbol's folder, its file and its line there."""

    exchange_id: str
    folder: str
    name: str
    line: int

    @classmethod
    def parse(cls, cursor: str) -> Place:
        """ValueError for a text that is no cursor."""
        try:
            exchange_id, folder, name, line = cursor.split("|")
            return cls(checked_exchange_id(exchange_id), folder, name, int(line))
        except ValueError:
            raise ValueError(f"{cursor[:40]!r} is no cursor of a list") from None

    def __str__(self) -> str:
        return f"{self.exchange_id}|{self.folder}|{self.name}|{self.line}"


@dataclass(frozen=True, slots=True)
class Which:
    """Which rows are meant; None means any."""

    exchange_id: str | None = None
    symbol: str | None = None
    timeframe: str | None = None

    def __post_init__(self) -> None:
        """ValueError for names that nothing can have."""
        if self.exchange_id is not None:
            checked_exchange_id(self.exchange_id)
        if self.symbol is not None:
            symbol_to_name(self.symbol)
        if self.timeframe is not None:
            Timeframe.parse(self.timeframe)


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row that is no bar, and the reason. `row` is what the exchange sent."""

    place: Place
    symbol: str
    timeframe: str
    ts: int | None
    reason: str
    code: str
    row: list[Any]
    known_at: int
    fence: int

    def facts(self) -> dict[str, Any]:
        return {
            "exchange_id": self.place.exchange_id,
            "symbol": self.symbol,
            "timeframe": self.timeframe,
            "ts": self.ts,
            "reason": self.reason,
            "code": self.code,
            "row": self.row,
            "known_at": self.known_at,
            "fence": self.fence,
        }


def refused_rows(
    storage: Storage, which: Which, after: Place | None = None
) -> Iterator[RefusedRow]:
    """The rows after the place `after`, in order. A damaged file is logged and skipped."""
    exchanges = stored_exchanges(storage) if which.exchange_id is None else [which.exchange_id]
    for exchange_id in exchanges:
        if after is None or exchange_id >= after.exchange_id:
            for folder in _folders(storage, exchange_id, which.symbol):
                if after is None or (exchange_id, folder) >= (after.exchange_id, after.folder):
                    yield from _of_symbol(storage, exchange_id, folder, which.timeframe, after)


def _folders(storage: Storage, exchange_id: str, symbol: str | None) -> list[str]:
    return storage.folders(exchange_id) if symbol is None else [symbol_to_name(symbol)]


def _of_symbol(
    storage: Storage, exchange_id: str, folder: str, timeframe: str | None, after: Place | None
) -> Iterator[RefusedRow]:
    try:
        symbol = name_to_symbol(folder)
        checked_exchange_id(exchange_id)
    except ValueError:
        return  # Not ours, whatever it is doing there.
    inside = f"{exchange_id}/{folder}/quarantine"
    prefix = "" if timeframe is None else f"{Timeframe.parse(timeframe).file_name}-"
    for name in storage.names(inside):
        if name.startswith(prefix) and not _is_behind(after, exchange_id, folder, name):
            for refused in _of_file(storage, exchange_id, symbol, f"{inside}/{name}"):
                if after is None or refused.place > after:
                    yield refused


def _is_behind(after: Place | None, exchange_id: str, folder: str, name: str) -> bool:
    """Whether a file was listed whole."""
    here = (exchange_id, folder, name)
    return after is not None and here < (after.exchange_id, after.folder, after.name)


def _of_file(storage: Storage, exchange_id: str, symbol: str, path: str) -> Iterator[RefusedRow]:
    name = path.rpartition("/")[2]
    try:
        timeframe = Timeframe.of_file_name(name.partition("-")[0])
        series = Series(exchange_id, symbol, timeframe)
        rows = read_quarantine(storage, series, path).to_pylist()
    except (ValueError, Vanished):
        return  # Not ours, or gone.
    except Corrupt as error:
        _log.error("quarantine_damaged", path=path, why=error.why)
        return
    for line, row in enumerate(rows):
        yield RefusedRow(
            place=Place(exchange_id, symbol_to_name(symbol), name, line),
            symbol=symbol,
            timeframe=row["tf"],
            ts=row["ts"],
            reason=row["reason"],
            code=row["code"],
            row=orjson.loads(row["row"]),
            known_at=row["known_at"],
            fence=row["fence"],
        )
