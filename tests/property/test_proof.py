"""Whatever a venue leaves out of its answers, no slot that has a bar is ever covered as empty.

A model of a venue: a market that trades in some minutes, and a way to cut answers. It is asked as
workers ask it, second question and all, and what the answers cover is compared with the market.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.exchanges.ccxt.learnt import Learnt, Question
from collector.exchanges.ccxt.page import Sent
from collector.market.bar_rows import BarRows
from collector.market.timeframe import Timeframe
from collector.pipeline.reading import AnswerRows, Reader
from collector.pipeline.second_question import second_question
from tests.support.examples import examples
from workers.handlers.asking import extent_of

if TYPE_CHECKING:
    from collector.market.interval import Interval

MINUTE = Timeframe.parse("1m")
STEP = MINUTE.ms
T0 = 1_704_067_200_000
SLOTS = 3_000
NOW = T0 + SLOTS * STEP + 17_000


@dataclass
class Market:
    """A venue that knows these minutes and answers in its own way."""

    traded: frozenset[int] = field(repr=False)
    cap: int = 1000
    newest: bool = False
    """Of too many rows it keeps the newest."""
    windowed: bool = False
    """It sends rows of the asked window only; else whatever comes after `since`."""
    ignores_since: bool = False
    exclusive: bool = False
    learnt: Learnt = field(default_factory=Learnt)
    sent: set[int] = field(default_factory=set)

    def ask(self, slot: int, size: int) -> Any:
        since_ms = T0 + slot * STEP
        first = -(-(self.learnt.since(since_ms) + self.exclusive - T0) // STEP)
        rows = sorted(self.traded)
        if not self.ignores_since:
            rows = [each for each in rows if each >= first]
        if self.windowed:
            rows = [each for each in rows if each < slot + size]
        limit = self.cap if self.ignores_since else min(self.cap, size)
        rows = rows[-limit:] if self.newest or self.ignores_since else rows[:limit]
        self.sent |= set(rows)
        bars = [(T0 + each * STEP, 10.0, 11.0, 9.0, 10.0, 1.0 + each % 2, None) for each in rows]
        sent = Sent(BarRows.of(bars), NOW, "klines")
        return self.learnt.read(Question(since_ms, size, "1m", STEP), sent, NOW)


def received(page: Any) -> AnswerRows:
    return AnswerRows(extent_of(page, MINUTE, NOW), page.rows)


def settled_by(market: Market, slot: int, size: int) -> list[int]:
    """The slots that a worker calls covered after one request, and a second one if need be."""
    market.sent.clear()
    reader = Reader(MINUTE, NOW)
    first = received(market.ask(slot, size))
    reading = reader.read([first])
    again = second_question(
        first.extent,
        reading.prepared,
        [],
        timeframe=MINUTE,
        ended_ms=MINUTE.floor(NOW),
    )
    if again is not None:
        bars = (again.to_ms - again.from_ms) // STEP
        second = received(market.ask((again.from_ms - T0) // STEP, min(bars, size)))
        reading = reader.read([first, second])
    return [at for each in reading.prepared.covered for at in _slots(each)]


def _slots(stretch: Interval) -> range:
    return range((stretch.from_ms - T0) // STEP, (stretch.to_ms - T0) // STEP)


@st.composite
def markets(draw: st.DrawFn) -> Market:
    rng = random.Random(draw(st.integers(0, 10_000)))
    density = draw(st.sampled_from([1.0, 0.95, 0.5, 0.1, 0.01]))
    traded = {slot for slot in range(SLOTS) if rng.random() < density}
    for _ in range(draw(st.integers(0, 3))):
        start, length = draw(st.integers(0, SLOTS)), draw(st.integers(1, 800))
        traded -= set(range(start, start + length))
    return Market(
        frozenset(traded),
        cap=draw(st.sampled_from([50, 100, 440, 500, 1000, 5000])),
        newest=draw(st.booleans()),
        windowed=draw(st.booleans()),
        ignores_since=draw(st.sampled_from([False, False, False, True])),
        exclusive=draw(st.sampled_from([False, False, True])),
    )


@settings(max_examples=examples(300), deadline=None)
@given(
    market=markets(),
    questions=st.lists(
        st.tuples(st.integers(0, SLOTS - 1), st.sampled_from([5, 100, 300, 1000, 1440])),
        min_size=1,
        max_size=12,
    ),
)
def test_no_slot_with_a_bar_is_settled_as_empty(
    market: Market, questions: list[tuple[int, int]]
) -> None:
    for slot, size in questions:
        settled = settled_by(market, slot, size)
        never_sent = market.traded - market.sent
        lost = [at for at in settled if at in never_sent]
        assert not lost, f"{len(lost)} bars from slot {lost[0]} on, asked {slot} for {size}"
