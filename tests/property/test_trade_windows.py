"""Whatever was traded when, and with concurrent walks: every trade is returned once it is final.

The venue of these tests keeps to what Gate says of itself, and takes the ends of a window in every
way that its words leave open.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from collector.clock import ManualClock
from collector.exchanges.ccxt.trade_questions import SHORTEST_MS, TradeQuestions
from collector.exchanges.ccxt.trades import LIVE_EDGE_MS, TradesAnswer
from collector.exchanges.quirks.gate import GATE
from collector.market.trade import Trade
from tests.support.gate_tape import Tape

if TYPE_CHECKING:
    from random import Random

    from collector.exchanges.port import TradePage

NOW = 1_735_732_800_000
START = NOW - 20 * 86_400_000
PAGE = 4
SMALL = replace(GATE, trades_page=PAGE)
ENOUGH = 2_000

bursts = st.tuples(
    st.one_of(st.integers(0, 4_000), st.integers(0, NOW - START)),  # when, after START
    st.integers(1, 3 * PAGE),
    st.sampled_from([0, 1, 90, 700, 60_000]),  # apart
)
tapes = st.builds(
    lambda told, leaves_out_ms, adds_ms: Tape(_trades(told), leaves_out_ms, adds_ms),
    st.lists(bursts, min_size=1, max_size=12),
    st.sampled_from([0, 1, 1000]),
    st.sampled_from([0, 1, 1000]),
)


def _trades(told: list[tuple[int, int, int]]) -> tuple[Trade, ...]:
    times = sorted(START + at + n * apart for at, count, apart in told for n in range(count))
    return tuple(Trade(str(n), ts, 1.0, 1.0) for n, ts in enumerate(t for t in times if t < NOW))


@dataclass
class Walk:
    """One job's way through the tape, from `since` to the present."""

    tape: Tape
    questions: TradeQuestions
    since: int
    now: int = NOW
    kept: dict[str, Trade] = field(default_factory=dict)
    requests: int = 0
    is_over: bool = False

    def step(self) -> None:
        question = self.questions.about("BTC/USDT", self.since)
        told = self.tape.told({**question.params, "limit": PAGE}, self.now)
        page = question.read(TradesAnswer(tuple(reversed(told)), len(told), self.now))
        self._check(page)
        self.kept |= {trade.id: trade for trade in page.trades}
        self.since, self.is_over = page.to_ms, page.is_latest
        self.requests += 1
        assert self.requests < ENOUGH, "it does not come to an end"

    def _check(self, page: TradePage) -> None:
        truth = {each.id for each in self.tape.between(page.from_ms, page.to_ms)}
        told = {each.id for each in page.trades if each.ts < page.to_ms}
        assert page.from_ms == self.since
        assert page.to_ms <= max(self.since, self.now - LIVE_EDGE_MS)
        assert told == truth, "the page settles what it does not tell"


def whole(walk: Walk, since: int) -> bool:
    settled = NOW - LIVE_EDGE_MS
    truth = {each.id for each in walk.tape.between(since, settled)}
    return {key for key, each in walk.kept.items() if each.ts < settled} == truth


@given(tapes, st.integers(0, 2_500))
def test_a_walk_brings_every_trade(tape: Tape, offset: int) -> None:
    walk = Walk(tape, TradeQuestions(SMALL, ManualClock(NOW)), START + offset)
    while not walk.is_over:
        walk.step()
    assert whole(walk, START + offset)
    assert walk.since == NOW - LIVE_EDGE_MS


@given(tapes, st.lists(st.integers(0, NOW - START), min_size=2, max_size=4), st.randoms())
def test_walks_of_one_market_do_not_hold_each_other_up(
    tape: Tape, offsets: list[int], chance: Random
) -> None:
    questions = TradeQuestions(SMALL, ManualClock(NOW))
    walks = [Walk(tape, questions, START + offset) for offset in offsets]
    while open_walks := [walk for walk in walks if not walk.is_over]:
        chance.choice(open_walks).step()
    for walk, offset in zip(walks, offsets, strict=True):
        assert whole(walk, START + offset)


@given(tapes, st.integers(-200_000, 200_000), st.sampled_from([700, 3_000]))
def test_the_present_is_followed_whatever_our_own_clock_says(
    tape: Tape, ahead_ms: int, step_ms: int
) -> None:
    clock = ManualClock(START + ahead_ms)
    walk = Walk(tape, TradeQuestions(SMALL, clock), START - 5_000, now=START)
    while walk.now < START + 60_000:
        walk.step()
        walk.now += step_ms
        clock.advance(step_ms / 1000)
    walk.step()
    while not walk.is_over:
        walk.step()
    assert walk.since > walk.now - LIVE_EDGE_MS - SHORTEST_MS
