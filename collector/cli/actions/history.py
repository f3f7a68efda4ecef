"""What `collector market-rate` and `collector volume` do."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.cli.database import files_of
from collector.cli.moments import shown_moment, typed_range
from collector.cli.output import Output, table
from collector.fleet.interface import PairRange
from collector.history.uint256 import SCALE

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.fleet.interface import PairName
    from collector.history.reader import Mode

_PRICES = ("open", "high", "low", "close")
_SUMS = ("sum_base", "sum_quote", "trades")


@dataclass(frozen=True, slots=True)
class TypedRange:
    """The requested part of the history, as it was typed."""

    start: str | None
    end: str | None
    bucket: int | None
    fill: bool
    limit: int
    cursor: str | None

    def read(self) -> PairRange:
        whole = typed_range(self.start, self.end, time.time_ns() // 1_000_000)
        return PairRange(*whole, self.bucket, self.fill, self.limit, self.cursor)


def market_rate(asked: Asked, pair: PairName, mode: Mode, wanted: TypedRange) -> Output:
    facts = files_of(asked).market_rate(pair, mode, wanted.read())
    if mode == "ohlcv":
        headings = ("time (UTC)", *_PRICES, *_SUMS)
        rows = [
            (
                shown_moment(each["ts"]),
                *(decimal(each[name]) for name in _PRICES),
                *(each[name] for name in _SUMS),
            )
            for each in facts["items"]
        ]
        return _listed(facts, headings, rows, asked)
    if facts["price"] is None:
        return Output(facts, "no trades in this range")
    if mode == "spot":
        return Output(facts, f"{decimal(facts['price'])} at {shown_moment(facts['ts'])}")
    message = f"{decimal(facts['price'])} over {facts['trades']} trades"
    return Output(facts, f"{message}: {facts['sum_base']} base for {facts['sum_quote']} quote")


def volume(asked: Asked, pair: PairName, wanted: TypedRange) -> Output:
    facts = files_of(asked).volume(pair, wanted.read())
    if "items" not in facts:
        message = f"{facts['sum_base']} base, {facts['sum_quote']} quote, {facts['trades']} trades"
        return Output(facts, message)
    rows = [(shown_moment(each["ts"]), *(each[name] for name in _SUMS)) for each in facts["items"]]
    return _listed(facts, ("time (UTC)", *_SUMS), rows, asked)


def decimal(price: str) -> str:
    """A price as a decimal number, every digit of it."""
    whole, part = divmod(int(price), SCALE)
    digits = f"{part:018}".rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _listed(
    facts: dict[str, Any], headings: tuple[str, ...], rows: list[tuple[Any, ...]], asked: Asked
) -> Output:
    if not rows:
        return Output(facts, "no trades in this range")
    more = facts["next_cursor"]
    notes = [f"there are more: --cursor {more}"] if more and not asked.json else []
    return Output(facts, table(headings, rows, right=" ".join(headings[1:])), notes)
