"""Which of a batch's inputs enter the ledger: trades, deletions, sums that would overflow.

Everything is judged in the order of sequence, one event after the other, so that it makes no
difference how events are cut into batches.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from collector.history.event import Op
from collector.history.policy import CrossNet, Outcome, outcome_of
from collector.history.refusal import Refused
from collector.history.uint256 import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from collector.history.event import CanonicalTrade, Event
    from collector.history.pair import Pair

    TradeKey = tuple[str, int, int]
    """The transaction, the position of the input, and the trade's time."""
    Row = tuple[int, int, Op, str, CanonicalTrade]
    Sums = Callable[[Pair, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An input that may become a row of the ledger. A deletion knows its trade by name only."""

    sequence: int
    index: int
    op: Op
    tx_hash: str
    ts: int
    """The trade's time."""
    trade: CanonicalTrade | None
    outcome: Outcome

    @property
    def key(self) -> TradeKey:
        return self.tx_hash, self.index, self.ts


def candidates(
    events: Iterable[tuple[int, Event]], policy: CrossNet
) -> tuple[list[Candidate], Counter[Outcome]]:
    """The inputs that are trades, and what became of the others."""
    found: list[Candidate] = []
    left_out: Counter[Outcome] = Counter()
    for sequence, event in events:
        try:
            made = list(_of_event(sequence, event, policy))
        except Refused:
            left_out[Outcome.REFUSED] += len(event.inputs)
            continue
        for each in made:
            if each.outcome in (Outcome.ADDED, Outcome.ADDED_CROSS_NET, Outcome.DELETED):
                found.append(each)
            else:
                left_out[each.outcome] += 1
    return found, left_out


def _of_event(sequence: int, event: Event, policy: CrossNet) -> Iterable[Candidate]:
    for index, given in enumerate(event.inputs):
        ts, trade, outcome = event.time_of(index), None, Outcome.DUPLICATE
        if ts is not None and event.op is Op.DELETE:
            # Not judged by policy: what it deletes was let in under the policy of then.
            outcome = Outcome.DELETED
        elif ts is not None:
            trade = given.trade(ts)
            outcome = outcome_of(given, trade, policy)
        yield Candidate(sequence, index, event.op, event.tx_hash, ts or 0, trade, outcome)


@dataclass
class Judge:
    """Applies candidates one event at a time."""

    bucket_ms: int
    standing: dict[TradeKey, CanonicalTrade]
    """Trades that may be deleted."""
    sums: Sums
    """What a bucket's sums are so far."""
    rows: list[Row] = field(default_factory=list)
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    _known: dict[tuple[Pair, int], tuple[int, int]] = field(default_factory=dict)

    def judge(self, given: Sequence[Candidate]) -> None:
        for _, event in itertools.groupby(given, key=lambda each: each.sequence):
            for op, inputs in itertools.groupby(event, key=lambda each: each.op):
                (self._add if op is Op.ADD else self._delete)(list(inputs))

    def _add(self, inputs: Sequence[Candidate]) -> None:
        sums: dict[tuple[Pair, int], tuple[int, int]] = {}
        for each in inputs:
            assert each.trade is not None
            where = each.trade.pair, each.ts - each.ts % self.bucket_ms
            base, quote = sums.get(where) or self._sums(where)
            sums[where] = base + each.trade.base, quote + each.trade.quote
        if any(base >= LIMIT or quote >= LIMIT for base, quote in sums.values()):
            self.outcomes[Outcome.REFUSED] += len(inputs)
            return
        self._known |= sums
        for each in inputs:
            assert each.trade is not None
            self.standing[each.key] = each.trade
            self.rows.append((each.sequence, each.index, Op.ADD, each.tx_hash, each.trade))
            self.outcomes[each.outcome] += 1

    def _delete(self, inputs: Sequence[Candidate]) -> None:
        for each in inputs:
            trade = self.standing.pop(each.key, None)
            if trade is None:
                self.outcomes[Outcome.UNMATCHED] += 1
                continue
            where = trade.pair, trade.ts - trade.ts % self.bucket_ms
            base, quote = self._sums(where)
            self._known[where] = base - trade.base, quote - trade.quote
            self.rows.append((each.sequence, each.index, Op.DELETE, each.tx_hash, trade))
            self.outcomes[Outcome.DELETED] += 1

    def _sums(self, where: tuple[Pair, int]) -> tuple[int, int]:
        if where not in self._known:
            self._known[where] = self.sums(*where)
        return self._known[where]
