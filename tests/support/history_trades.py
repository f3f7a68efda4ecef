"""Events, trades and a simple model of the history, for its tests."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.history.candle import Candle
from collector.history.event import CanonicalTrade, Event, Input, Op
from collector.history.pair import Asset, Pair
from collector.history.refusal import Refused
from collector.history.repeats import without_repeats
from collector.history.trade_columns import TradeColumns
from collector.history.uint256 import LIMIT, SCALE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.history.engine import History
    from collector.history.repeats import Inputs

T0 = 1_704_067_200_000
"""2024-01-01."""
MINUTE = 60_000
GOLD, OIL, SALT = Asset("1", "GOLD"), Asset("1", "OIL"), Asset("1", "SALT")
FAR = Asset("2", "FAR")
PAIR = Pair(GOLD, OIL)
OTHER = Pair(GOLD, SALT)
CROSS = Pair(GOLD, FAR)


def at(minute: float) -> int:
    return T0 + round(minute * MINUTE)


def trade(minute: float, price: int, base: int = 10, pair: Pair = PAIR) -> CanonicalTrade:
    """A trade at a small whole price, so that its quote is easy to compute."""
    return CanonicalTrade(pair, at(minute), price * SCALE, base, base * price)


def sale(price: int, value: int = 10, pair: Pair = PAIR, **changes: int) -> Input:
    """An input that sells the pair's base at a small whole price."""
    rest = {"residual": 0, "payout": 1, **changes}
    return Input(pair.base, pair.quote, price * SCALE, value, **rest)


def added(tx: str, minute: float, *inputs: Input) -> Event:
    return Event(Op.ADD, tx, at(minute), inputs)


def deleted(event: Event) -> Event:
    return Event(Op.DELETE, event.tx_hash, event.ts, event.inputs)


class Trades:
    """A ledger in memory: what survived, in the order it was added."""

    def __init__(self, trades: Iterable[CanonicalTrade] = ()) -> None:
        self.kept = list(trades)
        self.windows: list[tuple[int, int]] = []

    def trades(self, from_ms: int, to_ms: int) -> TradeColumns:
        self.windows.append((from_ms, to_ms))
        return TradeColumns.of([each for each in self.kept if from_ms <= each.ts < to_ms])


def read(
    history: History, pair: Pair = PAIR, from_ms: int = 0, to_ms: int = 1 << 47
) -> list[Candle]:
    found: list[Candle] = []
    history.for_each_range(pair, from_ms, to_ms, found.append)
    return found


def recomputed(
    trades: Iterable[CanonicalTrade], bucket_ms: int = MINUTE
) -> dict[Pair, list[Candle]]:
    """What the history must contain, computed plainly from the surviving trades in order."""
    by_bucket: defaultdict[Pair, defaultdict[int, list[CanonicalTrade]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for each in trades:
        by_bucket[each.pair][each.ts // bucket_ms * bucket_ms].append(each)
    return {pair: _candles(buckets) for pair, buckets in by_bucket.items()}


def _candles(buckets: dict[int, list[CanonicalTrade]]) -> list[Candle]:
    found: list[Candle] = []
    for ts in sorted(buckets):
        ordered = sorted(buckets[ts], key=lambda each: each.ts)
        prices = [each.price for each in ordered]
        opened = found[-1].close if found else prices[0]
        found.append(
            Candle(
                ts,
                opened,
                max(*prices, opened),
                min(*prices, opened),
                prices[-1],
                sum(each.base for each in ordered),
                sum(each.quote for each in ordered),
                ordered[0].ts,
                ordered[-1].ts,
                len(ordered),
            )
        )
    return found


@dataclass
class Numbering:
    """What an inbox does, in memory: events get sequences, repetitions are left out."""

    known: dict[str, Inputs] = field(default_factory=dict)
    head: int = 0

    def __call__(self, *events: Event) -> list[tuple[int, Event]]:
        batch = without_repeats(events, self.known, self.head)
        numbered = list(enumerate(batch.fresh, start=self.head + 1))
        self.known |= batch.known
        self.head += len(numbered)
        return numbered


@dataclass
class Model:
    """The rules, one event at a time, on plain lists: what any implementation has to equal."""

    bucket_ms: int = MINUTE
    last: dict[tuple[str, int], Op] = field(default_factory=dict)
    """The op of the last event of every input."""
    standing: dict[tuple[str, int], CanonicalTrade] = field(default_factory=dict)
    """Surviving trades by hash and input, in the order they were added."""
    last_prices: dict[Pair, int] = field(default_factory=dict)

    def apply(self, event: Event) -> bool:
        """Whether it was more than a repetition."""
        keys = [(event.tx_hash, index) for index in range(len(event.inputs))]
        fresh = {key for key in keys if self.last.get(key) is not event.op}
        self.last |= dict.fromkeys(fresh, event.op)
        if event.op is Op.DELETE:
            gone = [self.standing.pop(key) for key in fresh if key in self.standing]
            self._note({each.pair for each in gone})
            return bool(fresh)
        try:
            made = {
                key: given.trade(event.ts)
                for key, given in zip(keys, event.inputs, strict=True)
                if key in fresh
            }
        except Refused:
            return bool(fresh)
        made = {
            key: made[key]
            for key, given in zip(keys, event.inputs, strict=True)
            if key in fresh and given.payout and given.executed
        }
        if self._fits([*self.standing.values(), *made.values()]):
            self.standing |= made
            self._note({each.pair for each in made.values()})
        return bool(fresh)

    def _fits(self, trades: Sequence[CanonicalTrade]) -> bool:
        made = recomputed(trades, self.bucket_ms)
        return all(
            max(each.sum_base, each.sum_quote) < LIMIT for found in made.values() for each in found
        )

    def _note(self, pairs: Iterable[Pair]) -> None:
        made = recomputed(self.standing.values(), self.bucket_ms)
        self.last_prices |= {pair: made[pair][-1].close for pair in pairs if pair in made}
