"""The paths of all files.

    {exchange}/{symbol}/{tf}.parquet                                     sealed
    {exchange}/{symbol}/{tf}.parquet.sha256                              for sha256sum -c
    {exchange}/{symbol}/tail/{tf}.tail.parquet                           the last days of it
    {exchange}/{symbol}/whole/{tf}.parquet                               collected and made bars
    {exchange}/{symbol}/versions/{tf}.parquet                            older versions of bars
    {exchange}/{symbol}/parts/{tf}/{from}-{to}-{fence}-{n}.parquet       a page not merged yet
    {exchange}/{symbol}/quarantine/{tf}-{digest}.parquet                 rejected rows
    {exchange}/{symbol}/trades/{YYYY-MM-DD}.parquet                      the trades of a day (UTC)
    {exchange}/{symbol}/trades/parts/{from}-{to}-{trades}-{n}.parquet    trades not merged yet
    {exchange}/parts/{from}-{to}-{known_at}-{n}.parquet                  bars of many series

`{symbol}` is encoded by collector.market.symbol. `{tf}` is the timeframe, months as `1mo`: in many
file systems `1m.parquet` and `1M.parquet` are one file. `{n}` is the writer's own random word and
its count, so that no two parts ever share a name, and twelve digits of the content's SHA-256, so
that a damaged part is recognised by its name. The interval of a name encloses all that is inside.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.market.interval import Interval
from collector.market.symbol import checked_exchange_id, symbol_to_name
from collector.market.timeframe import Timeframe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.market.series import Series

_PART = re.compile(r"([0-9]{1,16})-([0-9]{1,16})-([0-9]{1,20})-([0-9a-z]{1,40})\.parquet")


@dataclass(frozen=True, slots=True)
class PartName:
    """A part's path and the time it encloses."""

    path: str
    hull: Interval

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def touches(self, from_ms: int, to_ms: int) -> bool:
        """Whether anything inside may lie in `[from_ms, to_ms)`."""
        return self.hull.from_ms < to_ms and from_ms < self.hull.to_ms


def symbol_folder(series: Series) -> str:
    return f"{series.exchange_id}/{symbol_to_name(series.symbol)}"


def sealed_path(series: Series) -> str:
    return f"{symbol_folder(series)}/{series.timeframe.file_name}.parquet"


def checksum_path(series: Series) -> str:
    return f"{sealed_path(series)}.sha256"


def tail_path(series: Series) -> str:
    return f"{symbol_folder(series)}/tail/{series.timeframe.file_name}.tail.parquet"


def whole_path(series: Series) -> str:
    return f"{symbol_folder(series)}/whole/{series.timeframe.file_name}.parquet"


def versions_path(series: Series) -> str:
    return f"{symbol_folder(series)}/versions/{series.timeframe.file_name}.parquet"


def pages_folder(series: Series) -> str:
    return f"{symbol_folder(series)}/parts/{series.timeframe.file_name}"


def groups_folder(exchange_id: str) -> str:
    return f"{exchange_id}/parts"


def quarantine_folder(series: Series) -> str:
    return f"{symbol_folder(series)}/quarantine"


def trades_folder(exchange_id: str, symbol: str) -> str:
    return f"{checked_exchange_id(exchange_id)}/{symbol_to_name(symbol)}/trades"


def trades_path(exchange_id: str, symbol: str, day: str) -> str:
    return f"{trades_folder(exchange_id, symbol)}/{day}.parquet"


def trade_parts_folder(exchange_id: str, symbol: str) -> str:
    return f"{trades_folder(exchange_id, symbol)}/parts"


def part_path(folder: str, hull: Interval, order: int, unique: str, data: bytes) -> str:
    """`order` is the fence of a page, the known_at of a group, and the number of trades."""
    return f"{folder}/{hull.from_ms}-{hull.to_ms}-{order}-{unique}{_digest(data)}.parquet"


def is_group(path: str) -> bool:
    """Whether this is the path of a group part, and not of a page part."""
    return path.count("/") == 2


def is_whole(path: str, data: bytes) -> bool:
    """Whether these bytes match the digest in this part's name."""
    return path.endswith(f"{_digest(data)}.parquet")


def belongs(path: str, exchange_id: str, pages: Mapping[str, Mapping[str, object]]) -> bool:
    """Whether a part with these pages, by timeframe and symbol, lies where it belongs."""
    exchange, *inside, _ = path.split("/")
    if exchange != exchange_id:
        return False
    if len(inside) == 1:
        return True
    folder, _, name = inside
    timeframe = parse_timeframe(name)
    found = [(tf, symbol_to_name(symbol)) for tf, symbols in pages.items() for symbol in symbols]
    return found == [(timeframe, folder)]


def parse_part(folder: str, name: str) -> PartName | None:
    """None for a file that is not a part."""
    match = _PART.fullmatch(name)
    if match is None or int(match[1]) >= int(match[2]):
        return None
    return PartName(f"{folder}/{name}", Interval(int(match[1]), int(match[2])))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def parse_sealed(name: str) -> str | None:
    """The timeframe in a sealed file's name."""
    stem, _, suffix = name.partition(".")
    return parse_timeframe(stem) if suffix == "parquet" else None


def parse_timeframe(name: str) -> str | None:
    """The timeframe that a name of this layout means; None when it means none."""
    try:
        return Timeframe.of_file_name(name).name
    except ValueError:
        return None
