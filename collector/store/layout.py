"""Where everything lies.

    {exchange}/{symbol}/{tf}.parquet                                     sealed
    {exchange}/{symbol}/{tf}.parquet.sha256                              for sha256sum -c
    {exchange}/{symbol}/tail/{tf}.tail.parquet                           the last days of it
    {exchange}/{symbol}/versions/{tf}.parquet                            older versions of bars
    {exchange}/{symbol}/parts/{tf}/{from}-{to}-{fence}-{n}.parquet       a page not merged yet
    {exchange}/{symbol}/quarantine/{tf}-{digest}.parquet                 rejected rows
    {exchange}/{symbol}/trades/{YYYY-MM-DD}.parquet                      the trades of a day (UTC)
    {exchange}/parts/{from}-{to}-{known_at}-{n}.parquet                  bars of many series

`{symbol}` is written as collector.market.symbol says. `{n}` is the writer's own random word and its
count, so that no two parts ever share a name, and twelve digits of the content's SHA-256, so that
a damaged part is told by its name. The interval of a name encloses all that is inside.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.interval import Interval
from collector.market.symbol import checked_exchange_id, symbol_to_name

if TYPE_CHECKING:
    from collector.market.series import Series

_PART = re.compile(r"([0-9]{1,16})-([0-9]{1,16})-([0-9]{1,20})-([0-9a-z]{1,40})\.parquet")
_SEALED = re.compile(r"([0-9]{1,4}[smhdw])\.parquet")


@dataclass(frozen=True, slots=True)
class PartName:
    """A part's path and the time it encloses."""

    path: str
    hull: Interval


def symbol_folder(series: Series) -> str:
    return f"{series.exchange_id}/{symbol_to_name(series.symbol)}"


def sealed_path(series: Series) -> str:
    return f"{symbol_folder(series)}/{series.timeframe}.parquet"


def checksum_path(series: Series) -> str:
    return f"{sealed_path(series)}.sha256"


def tail_path(series: Series) -> str:
    return f"{symbol_folder(series)}/tail/{series.timeframe}.tail.parquet"


def versions_path(series: Series) -> str:
    return f"{symbol_folder(series)}/versions/{series.timeframe}.parquet"


def pages_folder(series: Series) -> str:
    return f"{symbol_folder(series)}/parts/{series.timeframe}"


def groups_folder(exchange_id: str) -> str:
    return f"{exchange_id}/parts"


def quarantine_folder(series: Series) -> str:
    return f"{symbol_folder(series)}/quarantine"


def trades_folder(exchange_id: str, symbol: str) -> str:
    return f"{checked_exchange_id(exchange_id)}/{symbol_to_name(symbol)}/trades"


def trades_path(exchange_id: str, symbol: str, day: str) -> str:
    return f"{trades_folder(exchange_id, symbol)}/{day}.parquet"


def part_path(folder: str, hull: Interval, order: int, unique: str, data: bytes) -> str:
    """`order` is the fence of a page and the known_at of a group."""
    return f"{folder}/{hull.from_ms}-{hull.to_ms}-{order}-{unique}{_digest(data)}.parquet"


def is_whole(path: str, data: bytes) -> bool:
    """Whether these bytes are the ones that were given this part's name."""
    return path.endswith(f"{_digest(data)}.parquet")


def parse_part(folder: str, name: str) -> PartName | None:
    """None for a file that is not a part, whatever it is doing there."""
    match = _PART.fullmatch(name)
    if match is None or int(match[1]) >= int(match[2]):
        return None
    return PartName(f"{folder}/{name}", Interval(int(match[1]), int(match[2])))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def parse_sealed(name: str) -> str | None:
    """The timeframe a sealed file's name tells."""
    match = _SEALED.fullmatch(name)
    return match[1] if match else None
