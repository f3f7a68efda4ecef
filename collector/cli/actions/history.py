"""What `collector market-rate` and `collector volume` do: they read files and no database."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.cli.failures import UsageMistake
from collector.cli.moments import shown_moment
from collector.cli.output import Output, table
from collector.history.reader import HistoryReader
from collector.history.uint256 import SCALE
from collector.market.moment import moment_at
from collector.operations.history_events import check_network
from collector.operations.history_reads import known_pair
from collector.operations.moments import moment_ms

if TYPE_CHECKING:
    from collector.cli.verb import Asked
    from collector.history.reader import Mode

_PRICES = ("open", "high", "low", "close")
_SUMS = ("sum_base", "sum_quote", "trades")


@dataclass(frozen=True, slots=True)
class PairRange:
    """The requested part of the history, as it was typed."""

    start: str | None
    end: str | None
    bucket: int | None
    fill: bool
    limit: int
    cursor: str | None

    def arguments(self) -> dict[str, Any]:
        now_ms = time.time_ns() // 1_000_000
        start, end = (
            None if text is None else moment_ms(text, now_ms) for text in (self.start, self.end)
        )
        if start is not None and end is not None and end <= start:
            raise UsageMistake("--end is not after --start")
        return {
            "start": None if start is None else moment_at(start),
            "end": None if end is None else moment_at(end),
            "bucket": self.bucket,
            "fill": self.fill,
            "limit": self.limit,
            "cursor": self.cursor,
        }


def market_rate(asked: Asked, pair: tuple[str, str, str], mode: Mode, wanted: PairRange) -> Output:
    facts = _reader(asked, *pair).market_rate(mode, **wanted.arguments())
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


def volume(asked: Asked, pair: tuple[str, str, str], wanted: PairRange) -> Output:
    facts = _reader(asked, *pair).volume(**wanted.arguments())
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


def _reader(asked: Asked, network: str, base: str, quote: str) -> HistoryReader:
    settings = asked.settings()
    terms, pair = settings.history.terms, known_pair(base, quote)
    check_network(network, terms)
    return HistoryReader(network, pair.base, pair.quote, settings.data_root, cache=terms.cache)


def _listed(
    facts: dict[str, Any], headings: tuple[str, ...], rows: list[tuple[Any, ...]], asked: Asked
) -> Output:
    if not rows:
        return Output(facts, "no trades in this range")
    more = facts["next_cursor"]
    notes = [f"there are more: --cursor {more}"] if more and not asked.json else []
    return Output(facts, table(headings, rows, right=" ".join(headings[1:])), notes)
