"""An exchange that lies with some probability in each answer, and a collector with a dictionary.

The exchange counts rows from `since` on, as Binance does, and has none for a minute without trades.
The collector asks as workers do: page after page, again where the verdict says so, later from a
list. Times are numbers of slots; only questions and answers have milliseconds.
"""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from collector.market.answer import Answer, Question
from collector.market.bar_rows import BarRows
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import Timeframe
from collector.pipeline.evidence import (
    BAR,
    MOST_ANSWERS,
    MOST_LONGER,
    NO_TRADE,
    OPEN,
    SOONEST_MS,
    Activity,
    Known,
    Silence,
    Verdict,
    confirm,
    longer_question,
    question_about,
    weigh,
    young_slots,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MINUTE = Timeframe.parse("1m")
HOUR = Timeframe.parse("1h")
STEP = MINUTE.ms
YOUNG = young_slots(MINUTE)
T0 = 1_704_067_200_000
LIES = (
    "ignore_since",
    "empty",
    "drop",
    "block",
    "truncate",
    "head_cut",
    "stale",
    "late",
    "other_symbol",
    "ghost",
    "repeat_last",
    "wrong_value",
)


def ms(slot: int) -> int:
    return T0 + slot * STEP


def slot(at_ms: int) -> int:
    return (at_ms - T0) // STEP


class LyingExchange:
    """A market that trades in the slots of `has`."""

    def __init__(
        self, has: Any, seed: int, p: float = 0.0, kinds: Sequence[str] = LIES, outages: Any = ()
    ) -> None:
        self.rng, self.rng2 = np.random.default_rng(seed), np.random.default_rng(seed + 10**6)
        self.has, self.p, self.kinds, self.outages = has, p, kinds, outages
        n = len(has)
        walk = 100 * np.exp(np.cumsum(self.rng.normal(0, 0.0005, n)))
        volume = np.round(self.rng.lognormal(1, 1, n), 6)
        self.value = np.column_stack([np.round(walk, 6), volume])
        self.other = np.column_stack([np.round(walk[::-1] * 0.05, 6), volume[::-1]])
        self.slots = np.flatnonzero(has)
        self.log: list[tuple[Answer, str | None]] = []
        self.lost: list[Any] = []
        """Ranges that the exchange's database has lost, so that its hours lack them, too."""

    def ask(self, question: Question, now: float) -> Answer:
        ended = min(int(now), len(self.has))
        since = slot(question.from_ms)
        past = self.slots[: np.searchsorted(self.slots, ended)]
        ts = past[np.searchsorted(past, since) :][: question.limit]
        kind = next((kind for a, b, kind in self.outages if a <= now < b), None)
        if kind is None and self.rng.random() < self.p:
            kind = str(self.rng.choice(self.kinds))
        value, whole = self.value[ts].copy(), ts
        if kind:
            ts, value = self._lie(kind, ts, value, past, question.limit, ended)
            if kind == "block" and len(ts) < len(whole) and self.rng2.random() < 0.3:
                self.lost.append(np.setdiff1d(whole, ts))
        answer = _answer(question, T0 + ts * STEP, value, ended, now)
        self.log.append((answer, kind))
        return answer

    def ask_hours(self, question: Question, now: float) -> Answer:
        """Hourly bars of the minutes, less what the exchange has lost."""
        n = -(-len(self.has) // 60) * 60
        has, table = np.zeros(n, bool), np.zeros((n, 2))
        has[: len(self.has)] = self.has
        if self.p:
            for gone in self.lost:
                has[gone] = False
        table[: len(self.has)] = self.value
        kind = None
        if self.p and self.rng2.random() < self.p:
            known = ("ignore_since", "empty", "stale", "truncate", "other_symbol", "block")
            allowed = [each for each in known if each in self.kinds]
            kind = str(self.rng2.choice(allowed)) if allowed else None
        if kind == "other_symbol":
            table[: len(self.has)] = self.other
        hours = has.reshape(-1, 60)
        last = 59 - hours[:, ::-1].argmax(axis=1)
        close = table[:, 0].reshape(-1, 60)[np.arange(n // 60), last]
        volume = np.where(hours, table[:, 1].reshape(-1, 60), 0).sum(axis=1)
        ended = int(min(now, len(self.has))) // 60
        past = np.flatnonzero(hours.any(axis=1))
        past = past[past < ended]
        ts = past[np.searchsorted(past, slot(question.from_ms) // 60) :][: question.limit]
        if kind == "ignore_since":
            ts = past[-question.limit :]
        elif kind == "empty":
            ts = ts[:0]
        elif kind == "stale":
            ts = ts[ts < ended - int(self.rng2.integers(1, 30))]
        elif kind == "truncate" and len(ts):
            ts = ts[: int(self.rng2.integers(0, len(ts)))]
        elif kind == "block" and len(ts) > 4:
            keep = np.ones(len(ts), bool)
            a = int(self.rng2.integers(1, len(ts) - 1))
            keep[a : a + int(self.rng2.integers(1, max(2, len(ts) // 2)))] = False
            keep[-1] = True
            ts = ts[keep]
        value = np.column_stack([close, volume])[ts]
        return _answer(question, T0 + ts * 60 * STEP, value, ended * 60, now)

    def _lie(self, kind: str, ts: Any, value: Any, past: Any, limit: int, ended: int) -> Any:
        rng, n = self.rng, len(ts)
        keep = np.ones(n, bool)
        if kind == "ignore_since":
            ts = past[-limit:]
            return ts, self.value[ts].copy()
        if kind == "empty":
            keep[:] = False
        elif kind == "drop" and n:
            keep[rng.integers(0, n, rng.integers(1, 4))] = False
        elif kind == "block" and n > 4:
            a = int(rng.integers(1, n - 1))
            keep[a : a + int(rng.integers(1, max(2, n // 2)))] = False
            keep[-1] = True
        elif kind == "truncate" and n:
            keep[int(rng.integers(0, n)) :] = False
        elif kind == "head_cut" and n:
            keep[: int(rng.integers(1, n + 1))] = False
        elif kind == "stale":
            keep = ts < ended - int(rng.integers(12, 300))
        elif kind == "late":
            keep = ts < ended - 9
        elif kind == "other_symbol":
            value = self.other[ts].copy()
        elif kind == "ghost" and n > 2:
            free = np.setdiff1d(np.arange(ts[0], ts[-1]), ts)
            if len(free):
                at = int(rng.choice(free))
                where = int(np.searchsorted(ts, at))
                ts = np.insert(ts, where, at)
                made = (value[where - 1] + value[where]) / 2
                value = np.insert(value, where, made, axis=0)
                return ts[:limit], value[:limit]
        elif kind == "repeat_last" and n > 1:
            value[-1] = value[-2]
        elif kind == "wrong_value" and n:
            at = int(rng.integers(0, n))
            value[at] = value[at] * ((1.5, 1.0) if rng.random() < 0.5 else (1.0, 0.5))
        return ts[keep], value[keep]


def _answer(question: Question, ts: Any, value: Any, ended: int, now: float) -> Answer:
    price, volume = value[:, 0], value[:, 1]
    unknown = np.full(len(ts), np.nan)
    table = np.column_stack([ts, price, price, price, price, volume, unknown])
    rows = BarRows.of_table(table.astype(np.float64))
    full = len(ts) >= question.limit
    return Answer(question, rows, full=full, ended_ms=ms(ended), at=T0 + round(now * STEP))


class DictCollector:
    """Asks as the workers do, with arrays as its lake."""

    def __init__(self, exchange: LyingExchange, page: int, now: float) -> None:
        n = len(exchange.has)
        self.exchange, self.page, self.now = exchange, page, float(now)
        self.state, self.value = np.zeros(n, np.int8), np.zeros((n, 2))
        self.activity = Activity()
        self.silences: list[Silence] = []
        self.todo: list[tuple[float, int, int, bool]] = []
        self.tries: Counter[Any] = Counter()
        self.requests = self.hour_requests = self.turn = 0

    # The lake

    def known(self, low: int, high: int, *, longer: bool = True, margin: int = 0) -> Known:
        n, page = len(self.state), margin or self.page
        a, b = max(0, low - page), min(n, high + page)
        while a > 0 and self.state[a] == NO_TRADE:
            a -= 1
        while b < n and self.state[b - 1] == NO_TRADE:
            b += 1
        wide = slice(max(0, low - 20 * page), min(n, high + 20 * page))
        at = wide.start + np.flatnonzero(self.state[wide] == BAR)
        price, volume = self.value[at, 0], self.value[at, 1]
        columns = [T0 + at * STEP, price, price, price, price, volume, np.full(len(at), np.nan)]
        bars = CandleBatch.of_columns(np.column_stack(columns).astype(np.float64))
        empty = tuple(Interval(ms(a + x), ms(a + y)) for x, y in runs(self.state[a:b] == NO_TRADE))
        window = Interval(ms(a), ms(b)) if a < b else Interval(ms(low), ms(low + 1))
        silences = [part for each in self.silences if (part := each.within(window)) is not None]
        newest = np.flatnonzero(self.state == BAR)
        return Known(
            MINUTE,
            self.page,
            bars,
            empty,
            tuple(silences),
            self.activity,
            newest_ms=ms(int(newest[-1])) if len(newest) else 0,
            counts_rows=True,
            longer=HOUR if longer else None,
        )

    def apply(self, verdict: Verdict, low: int, high: int) -> None:
        n = len(self.state)
        for each in verdict.withdrawn:
            part = slice(max(0, slot(each.from_ms)), min(n, slot(each.to_ms)))
            self.state[part][self.state[part] == NO_TRADE] = OPEN
            self._forget(each)
        at = (verdict.bars.ts - T0) // STEP
        self.state[at] = BAR
        self.value[at] = np.column_stack([verdict.bars.c, verdict.bars.v])
        for ts in verdict.removed:
            self.state[slot(ts)] = OPEN
        for each in verdict.empty:
            part = slice(slot(each.from_ms), slot(each.to_ms))
            self.state[part][self.state[part] == OPEN] = NO_TRADE
        self._forget(Interval(ms(low), ms(high)))
        self.silences += verdict.silences
        self.activity = verdict.activity
        for each in verdict.recheck:
            self.push(self.now + SOONEST_MS / STEP, slot(each.from_ms), slot(each.to_ms), True)

    def _forget(self, window: Interval) -> None:
        kept = []
        for each in self.silences:
            head = Interval(0, window.from_ms)
            tail = Interval(window.to_ms, 2**60)
            kept += [part for side in (head, tail) if (part := each.within(side)) is not None]
        self.silences = kept

    # Asking

    def about(self, question: Question, most: int = MOST_ANSWERS, *, push: bool = True) -> None:
        answers: list[Answer] = []
        low, high = slot(question.from_ms), slot(question.to_ms)
        while True:
            answers.append(self.exchange.ask(question, self.now))
            self.requests, self.now = self.requests + 1, self.now + 0.001
            a = min(slot(each.question.from_ms) for each in answers)
            b = max(slot(each.question.to_ms) for each in answers)
            known = self.known(max(0, a), b)
            inside = Interval(ms(a), ms(b))
            silences = [p for e in known.silences if (p := e.within(inside)) is not None]
            known = replace(known, silences=tuple(silences))
            verdict = weigh(known, answers)
            if verdict.ask is None or len(answers) >= most:
                break
            question = question_about(known, verdict.ask, answers)
        self.apply(verdict, a, b)
        if push:
            self.owe(max(0, min(a, low)), max(b, high))

    def owe(self, low: int, high: int) -> None:
        """Puts what is open in a range on the list, each at its time."""
        end = min(high, int(self.now) - YOUNG, len(self.state))
        heard = np.zeros(max(0, end - low), bool)
        for each in self.silences:
            a, b = max(low, slot(each.from_ms)), min(end, slot(each.to_ms))
            if a < b:
                heard[a - low : b - low] = True
                if each.due_ms:
                    for x, y in runs(self.state[a:b] == OPEN):
                        self.push((each.due_ms - T0) / STEP, a + x, a + y, False)
        for a, b in runs((self.state[low:end] == OPEN) & ~heard):
            self.push(self.now + SOONEST_MS / STEP, low + a, low + b, False)

    def push(self, due: float, a: int, b: int, check: bool) -> None:
        if not check:
            b = min(b, len(self.state) - YOUNG)
        if a >= b:
            return
        key = (a, b, check)
        self.tries[key] += 1
        if self.tries[key] <= 40:
            heapq.heappush(self.todo, (due, max(0, a), min(b, len(self.state)), check))

    def backfill(self, until: int) -> None:
        at = 0
        while at < until:
            since = max(0, at - 1)
            to = min(since + self.page, until)
            self.about(Question(MINUTE, ms(since), ms(to), to - since, Interval(ms(at), ms(to))))
            at = to
            waits = [each for each in self.silences if not each.due_ms]
            if waits and at - slot(waits[0].from_ms) > (self.page - 4) * 60:
                self.by_hours(most=1)
        self.by_hours()

    def by_hours(self, most: int = 99) -> None:
        """One request for hourly bars for all silences of its range that wait for it."""
        for _ in range(most):
            self._drop_settled()
            for turn in range(MOST_LONGER):
                known = replace(self.known(0, 1), silences=tuple(self.silences))
                question = longer_question(known, turn)
                if question is None:
                    return
                answer = self.exchange.ask_hours(question, self.now)
                self.requests, self.now = self.requests + 1, self.now + 0.001
                self.hour_requests += 1
                low = max(0, slot(question.from_ms))
                high = min(len(self.state), slot(question.to_ms))
                known = replace(self.known(low, high, margin=2), silences=tuple(self.silences))
                verdict = confirm(known, answer, is_last=turn == MOST_LONGER - 1)
                if verdict is not None:
                    break
            self.silences = []
            self.apply(verdict, low, high)
            self.owe(low, high)

    def _drop_settled(self) -> None:
        """Forgets silences that have no open slot left."""
        self.silences = [
            each
            for each in self.silences
            if (self.state[max(0, slot(each.from_ms)) : slot(each.to_ms)] == OPEN).any()
        ]

    def read_again(self, until: int) -> None:
        at = 0
        while at < until:
            since = question_about(self.known(at, at + 1), Interval(ms(at), ms(at + 1)), turn=1)
            first = max(0, slot(since.from_ms)) if at else 0
            to = min(max(first, at) + self.page - 3, until)
            self.about(Question(MINUTE, ms(first), ms(to), min(self.page, to - first)))
            at = to

    def finish(self) -> None:
        for _ in range(200_000):
            waits = any(not each.due_ms for each in self.silences)
            if waits and (not self.todo or self.todo[0][0] > self.now):
                self.by_hours()
                if not self.todo:
                    return
                continue
            if not self.todo:
                return
            due, a, b, check = heapq.heappop(self.todo)
            self.turn += 1
            self.now = max(self.now, due)
            if check:
                self._check(a, b)
                continue
            a, b = self._gather(a, b)
            opened = np.flatnonzero(self.state[a:b] == OPEN)
            if len(opened):
                first, last = a + int(opened[0]), a + int(opened[-1]) + 1
                known = self.known(first, last)
                stretch = Interval(ms(first), ms(last))
                self.about(question_about(known, stretch, turn=self.turn % 3))
        raise AssertionError("it never ends")

    def _check(self, a: int, b: int) -> None:
        while a < b:
            known = self.known(a, a + 1)
            since = question_about(known, Interval(ms(a), ms(a + 1)), turn=1 + self.turn % 2)
            first = max(0, slot(since.from_ms)) if a else 0
            to = min(max(a, first) + self.page - 4, len(self.state))
            self.about(Question(MINUTE, ms(first), ms(to), min(self.page, to - first)))
            a = to

    def _gather(self, a: int, b: int) -> tuple[int, int]:
        """One request for all that is due within a day and fits into a page."""
        while True:
            near = [
                each
                for each in self.todo
                if not each[3]
                and each[0] <= self.now + 1440
                and max(b, each[2]) - min(a, each[1]) < self.page - 8
            ]
            if not near:
                return a, b
            item = min(near)
            self.todo.remove(item)
            heapq.heapify(self.todo)
            self.now = max(self.now, item[0])
            a, b = min(a, item[1]), max(b, item[2])

    def poll(self, t: int) -> None:
        self.now = t + 0.1
        recent = max(0, t - self.page // 2)
        opened = np.flatnonzero(self.state[recent:t] == OPEN)
        first = recent + int(opened[0]) if len(opened) else t
        known = self.known(first, t + 1)
        since = question_about(known, Interval(ms(first), ms(first + 1)), turn=2 + t % 2)
        low = max(0, slot(since.from_ms))
        self.about(
            Question(MINUTE, ms(low), ms(t + 1), min(self.page, max(3, t + 1 - low))),
            most=2,
            push=False,
        )


def runs(mask: Any) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def wrong_slots(c: DictCollector, until: int) -> tuple[Any, int]:
    """The slots whose settled state is false, and how many are open."""
    ex = c.exchange
    true = np.where(ex.has[:until], BAR, NO_TRADE)
    state = c.state[:until]
    bad = (state != OPEN) & (state != true)
    differs = (c.value[:until] != ex.value[:until]).any(axis=1)
    bad |= (state == BAR) & ex.has[:until] & differs
    return np.flatnonzero(bad), int(np.count_nonzero(state == OPEN))


def spoke_truly(ex: LyingExchange, answer: Answer, at: int) -> bool:
    """Whether an answer has a true row in a slot, or is truly silent there between two rows."""
    ts, asked = ms(at), answer.question
    if not asked.from_ms <= ts < min(asked.to_ms, answer.ended_ms):
        return False
    place = int(np.searchsorted(answer.bars.ts, ts))
    has = place < len(answer.bars) and answer.bars.ts[place] == ts
    if ex.has[at]:
        mine = (answer.bars.c[place], answer.bars.v[place]) if has else None
        return has and mine == tuple(ex.value[at])
    young = ts >= answer.ended_ms - YOUNG * STEP
    in_scope = asked.scope.from_ms <= ts < asked.scope.to_ms
    return in_scope and not has and 0 < place < len(answer.bars) and not young


def contradicted_and_false(c: DictCollector, bad: Any) -> tuple[int, Counter[str]]:
    """Of the wrong slots, those about which an honest answer spoke truly after the last lie.

    Two lies that say the same outvote one truth, until the next honest answers: a slot about which
    two agree is counted by itself.
    """
    ex, broken, by = c.exchange, 0, Counter()
    for at in bad.tolist():
        lied, kind_of = -1, "no lie at all"
        said: Counter[Any] = Counter()
        for number, (answer, kind) in enumerate(ex.log):
            asked = answer.question
            inside = asked.from_ms <= ms(at) < asked.to_ms
            if kind and inside and not spoke_truly(ex, answer, at):
                lied, kind_of = number, kind
                said[_claim(answer, at)] += 1
        if max(said.values(), default=0) > 1:
            by["two lies agreed"] += 1
            continue
        by[kind_of] += 1
        honest = (answer for answer, kind in ex.log[lied + 1 :] if kind is None)
        broken += lied < 0 or any(spoke_truly(ex, each, at) for each in honest)
    return broken, by


def _claim(answer: Answer, at: int) -> Any:
    place = int(np.searchsorted(answer.bars.ts, ms(at)))
    if place < len(answer.bars) and answer.bars.ts[place] == ms(at):
        return float(answer.bars.c[place]), float(answer.bars.v[place])
    return "silent"


def market(kind: str, n: int, rng: Any) -> Any:
    """Which slots of a market have trades."""
    t = np.arange(n)
    if kind == "busy":
        has = np.ones(n, bool)
    elif kind == "nearly":
        has = rng.random(n) > 0.0005
    else:
        q = {"sparse": 0.3, "thin": 0.05}[kind]
        days = np.repeat(rng.lognormal(0, 0.5, n // 1440 + 1), 1440)[:n]
        rate = q * (1 + 0.8 * np.sin(2 * np.pi * t / 1440)) * days
        has = rng.random(n) < np.clip(rate, 0, 0.98)
    has[0] = has[n - 1] = True
    return has


def with_halts(has: Any, rng: Any, count: int) -> Any:
    for _ in range(count):
        a = int(rng.integers(100, len(has) - 500))
        has[a : a + int(rng.integers(20, 360))] = False
    return has


def np_rng(seed: int) -> Any:
    return np.random.default_rng(seed)
