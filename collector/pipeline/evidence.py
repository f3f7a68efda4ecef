"""What is believed of an exchange's answers about bars: the one rule. Pure.

A row says much and a silence says little, so an answer is evidence about the interval that was
asked for and about nothing else:

- A *row* claims a bar. It settles its slot at once, unless it does not fit its neighbours.
- A *silence* is a run of slots without rows between two rows of the same answer, its anchors,
  which may lie outside the question. At the edge of an answer, with rows on one side only, it is
  weak, and an empty answer claims nothing.
- One answer settles a silence that is ordinary for this market: silences of about its length were
  settled before, and at most ten rows are expected in it. Another silence needs a second answer to
  a different question: at once when few rows are expected in it, and later, after as long as the
  expected rows take, when many are. One that ended more than a day ago is confirmed by longer bars
  instead, one request for all of a long range.
- An answer that is contradicted by two others, or by one and the stored bar, loses every claim. A
  third one decides between a row and another row, or a silence; slots on which five do not agree
  stay open. To change or remove a stored bar takes two answers that agree.
- Nothing settled is beyond recall: a row in a slot that was settled as `no_trade` withdraws the
  whole silence and those near it, and their range is asked about again.

`weigh` applies this to the answers about one range and what is known around it, and `confirm` does
the same with longer bars. Neither changes anything: each returns a `Verdict`. `docs/adr/0051-*`
tells why the rule is like this.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from collector.durations import DAY_MS, MINUTE_MS
from collector.market.answer import Question, keep_last
from collector.market.candles import CandleBatch
from collector.market.interval import Interval, clipped, covers, subtract, unbroken, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from collector.market.answer import Answer, Rejected
    from collector.market.timeframe import Timeframe

    Mask = NDArray[np.bool_]
    Codes = NDArray[np.int8]
    Times = NDArray[np.int64]
    Floats = NDArray[np.float64]

OPEN, BAR, NO_TRADE = 0, 1, 2
"""States of a slot."""
NOTHING, ROW, SILENT, EDGE = 0, 1, 2, 3
"""What an answer claims about a slot."""

FEWEST_ROWS = 3
"""A question asks for no fewer rows: a bar, one before it and one behind."""
MOST_ANSWERS = 5
"""Answers about one range in one run."""
MOST_EMPTY = 3
"""Of these, empty ones, and ones with rows on one side only: more at once say no more."""
WIDEST_PAGES = 20
"""A question spans at most this many pages of slots, where an exchange counts rows."""
ORDINARY_SHARE = 0.01
"""A length of silence is ordinary if it occurs in one page of a hundred."""
MEMORY_PAGES = 128.0
"""Pages over which a market's activity fades."""
FEW_ROWS = 10.0
"""A silence in which more rows than this are expected is never ordinary."""
SOONEST_MS, LATEST_MS = 10 * MINUTE_MS, 3 * DAY_MS
"""When a silence is asked about again at the earliest and at the latest."""
YOUNG_MS = 10 * MINUTE_MS
"""An empty slot says nothing if it ended this recently, or is one of the last few: the exchange may
not have made its bar yet."""
REVISABLE_MS = 10 * MINUTE_MS
"""A bar that ended this recently is revised by one answer: exchanges correct young bars."""
OLD_MS = DAY_MS
"""A silence that ended this long ago is confirmed by longer bars."""
BUSY = 0.5
"""With more rows per slot than this, a long silence is not confirmed by longer bars: a range that
an exchange has lost is lost in its hours, too."""
JUMP = 20.0
"""A move of more than this many median moves is asked about again."""
FEWEST_MOVES = 50
"""Fewer bars that moved give no median."""
MOST_LONGER = 3
"""Answers with longer bars that are dropped before the silences are asked about themselves."""
SUMS_DIFFER = 0.002
"""If more of its complete longer bars disagree with their parts, sums confirm nothing."""
LENGTHS = 24
"""Counters of silences, by powers of two of their length."""


@dataclass(frozen=True, slots=True)
class Activity:
    """How a market trades: rows per slot, how long its silences are, how far its price moves.

    It is counted from settled slots and fades, so that a market may change.
    """

    pages: float = 0.0
    slots: float = 0.0
    bars: float = 0.0
    silences: tuple[float, ...] = (0.0,) * LENGTHS
    move: float = 0.0
    """The median move of a bar; 0 while it is unknown."""

    @property
    def density(self) -> float:
        """Rows per slot; 1 while nothing is known."""
        return self.bars / self.slots if self.slots else 1.0

    def is_ordinary(self, length: int) -> bool:
        """Whether silences of about this length, or up to four times as long, occur.

        At least two were settled, in at least one page of a hundred. In a quiet market all longer
        ones count, too.
        """
        at = _power(length)
        seen = sum(self.silences[at : at + 2])
        if self.density < BUSY:
            seen += sum(self.silences[at + 2 :])
        few = self.density * length <= FEW_ROWS
        return few and seen >= 1.5 and seen >= ORDINARY_SHARE * self.pages

    def add(
        self, slots: int, bars: int, lengths: Iterable[int], page: int, move: float
    ) -> Activity:
        """The activity after further slots, silences of these lengths among them."""
        keep = max(0.0, 1 - slots / page / MEMORY_PAGES)
        counts = [number * keep for number in self.silences]
        for length in lengths:
            counts[_power(length)] += 1
        return Activity(
            self.pages * keep + slots / page,
            self.slots * keep + slots,
            self.bars * keep + bars,
            tuple(counts),
            move or self.move,
        )

    @classmethod
    def of(
        cls, bars: CandleBatch, covered: Sequence[Interval], timeframe: Timeframe, page: int
    ) -> Activity:
        """The activity that stored bars and what is covered around them show."""
        empty = subtract(covered, unbroken(bars.ts, timeframe))
        slots = sum(timeframe.count(part.from_ms, part.to_ms) for part in covered)
        lengths = [timeframe.count(part.from_ms, part.to_ms) for part in empty]
        move = _median_move(_moves(bars))
        return cls().add(slots, len(bars), [length for length in lengths if length], page, move)


@dataclass(frozen=True, slots=True)
class Silence:
    """A range in which every slot that is not settled was reported as empty, and not believed yet.

    The same in a job's `progress.silences`, as a list of these numbers.
    """

    from_ms: int
    to_ms: int
    heard: int
    """Independent answers so far that have no row there; 0: only at the edge of an answer."""
    first_at: int
    last_at: int
    """When the first and the last of these answers came, on the database's clock."""
    asked_from: int
    """Where the question of the last answer began: the next one has to begin elsewhere."""
    due_ms: int
    """When it is asked about again; 0: it waits for longer bars."""

    @property
    def interval(self) -> Interval:
        return Interval(self.from_ms, self.to_ms)

    def document(self) -> list[int]:
        """As it is stored."""
        return [getattr(self, name) for name in self.__slots__]

    def within(self, window: Interval) -> Silence | None:
        """The part inside a window; None when there is none."""
        part = clipped([self.interval], window)
        return replace(self, from_ms=part[0].from_ms, to_ms=part[0].to_ms) if part else None


def cut(silences: Iterable[Silence], holes: Sequence[Interval]) -> tuple[Silence, ...]:
    """What is left of silences outside of some ranges."""
    return tuple(
        replace(silence, from_ms=part.from_ms, to_ms=part.to_ms)
        for silence in silences
        for part in subtract([silence.interval], holes)
    )


@dataclass(frozen=True, eq=False)
class Known:
    """What is settled in a range and next to it, and what was heard and is not settled yet."""

    timeframe: Timeframe
    page: int
    """The most rows that the exchange sends in one answer."""
    bars: CandleBatch = field(default_factory=CandleBatch.empty)
    empty: tuple[Interval, ...] = ()
    """Ranges that are settled as `no_trade`."""
    silences: tuple[Silence, ...] = ()
    activity: Activity = Activity()
    newest_ms: int = 0
    """When the newest bar of the series opens: behind it a silence can have no anchor."""
    counts_rows: bool = False
    """Whether the exchange counts rows from a moment on. Else it serves a window of slots."""
    longer: Timeframe | None = None
    """Bars that may confirm old silences; None where the exchange has none that fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What answers settle, and what to do next."""

    bars: CandleBatch = field(default_factory=CandleBatch.empty)
    """Bars to store: new ones, and other values of stored ones."""
    empty: tuple[Interval, ...] = ()
    """Slots that are settled as `no_trade` now."""
    withdrawn: tuple[Interval, ...] = ()
    """Ranges in which nothing counts as `no_trade` any longer."""
    removed: tuple[int, ...] = ()
    """Slots whose stored bar is to be removed: two answers agree that there is none."""
    refused: tuple[Rejected, ...] = ()
    ask: Interval | None = None
    """Ask about this range once more, now."""
    recheck: tuple[Interval, ...] = ()
    """Settled ranges that have become doubtful: ask about all of them."""
    silences: tuple[Silence, ...] = ()
    """All open silences of the range; they replace those that were known there. `due_ms` is when to
    ask about each of them."""
    activity: Activity = Activity()


def young_slots(timeframe: Timeframe) -> int:
    """How many of the last slots are too young for a silence: three of 1m, two of 5m, one of 1h."""
    return max(1, min(3, YOUNG_MS // timeframe.ms))


def weigh(known: Known, answers: Sequence[Answer]) -> Verdict:
    """What the answers to questions about one range, in the order they came, settle together."""
    usual = weigh_usual(known, answers[0]) if len(answers) == 1 else None
    return _Weighing(known, answers).verdict() if usual is None else usual


def weigh_usual(known: Known, answer: Answer) -> Verdict | None:
    """A page with a bar in every slot that contradicts nothing: most pages of a history.

    A look at its times and values is enough; None when it is anything else.
    """
    bars, asked, frame = answer.bars, answer.question, known.timeframe
    if answer.refused or known.silences or not frame.are_in_line(bars.ts):
        return None
    end_ms = min(asked.to_ms, answer.ended_ms)
    start, stop = np.searchsorted(bars.ts, (asked.from_ms, end_ms)).tolist()
    inside = bars if (start, stop) == (0, len(bars)) else bars.take(slice(start, stop))
    if not len(inside) or inside.ts[0] != asked.from_ms or frame.end(int(inside.ts[-1])) < end_ms:
        return None
    if any(part.overlaps(Interval(asked.from_ms, end_ms)) for part in known.empty):
        return None
    new = covers([asked.scope], inside.ts)
    if len(known.bars):
        places, stored = _places(inside.ts, known.bars)
        if (_table(known.bars.take(stored)) != _table(inside.take(places))).any():
            return None
        new[places] = False
    move = _median_move(moves := _moves(inside))
    if _doubtful(known, inside, moves, move).any():
        return None
    bars = inside.only(new)
    activity = known.activity.add(len(bars), len(bars), (), known.page, move)
    return Verdict(bars, activity=activity)


def question_about(
    known: Known, stretch: Interval, answers: Sequence[Answer] = (), turn: int = 0
) -> Question:
    """A question about a range, from a bar before it to the first bar behind it.

    Each one begins at an earlier bar than those before, and so does each `turn`, so that neither a
    cache nor an alignment gives the same answer. A first answer that is empty says nothing, so its
    question is repeated.
    """
    if len(answers) == 1 and not len(answers[0].rows):
        return answers[0].question
    frame = known.timeframe
    ts = np.unique(np.concatenate([known.bars.ts, *(answer.bars.ts for answer in answers)]))
    reach = known.page * WIDEST_PAGES if known.counts_rows else known.page // 2
    before = ts[(ts < stretch.from_ms) & (ts >= frame.shift(stretch.from_ms, -reach))]
    if len(before):
        heard = [silence.interval for silence in known.silences]
        between = [Interval(int(before[-1]), stretch.from_ms)]
        unknown = subtract(between, [*unbroken(before[-1:], frame), *known.empty, *heard])
        if sum(frame.count(part.from_ms, part.to_ms) for part in unknown) > known.page // 2:
            before = before[:0]  # An answer from there on may end before it comes to the range.
    behind = ts[(ts >= stretch.to_ms) & (ts < frame.shift(stretch.to_ms, reach))]
    end_ms = frame.end(int(behind[0])) if len(behind) else stretch.to_ms
    asked = {answer.question.from_ms for answer in answers}
    for back in count(turn + len(answers)):
        start_ms = int(before[max(0, len(before) - 1 - back)]) if len(before) else stretch.from_ms
        start_ms = frame.shift(start_ms, min(0, len(before) - 1 - back))
        if start_ms not in asked:
            break
    limit = min(known.page, max(FEWEST_ROWS, frame.count(start_ms, end_ms)))
    to_ms = frame.shift(start_ms, limit)
    return Question(
        frame, start_ms, max(end_ms, to_ms) if known.counts_rows else to_ms, limit, stretch
    )


class _Rows(NamedTuple):
    """What answers settle about rows: the bars, and masks over the slots."""

    bars: CandleBatch
    taken: Mask
    held: Mask
    removed: Mask
    withdrawn: tuple[Interval, ...]
    recheck: tuple[Interval, ...]


class _Silences(NamedTuple):
    """The same about silences: those that are settled, asked about now, and left waiting."""

    settled: Mask
    held: Mask
    waiting: Mask
    lengths: list[int]


class _Weighing:
    """The slow way: every slot of the range, claim by claim."""

    def __init__(self, known: Known, answers: Sequence[Answer]) -> None:
        self.known, self.answers, self.frame = known, answers, known.timeframe
        self.slots, closed = _slots_of(answers)
        self.state, self.values = _settled(known, self.slots)
        self.is_last = len(answers) >= MOST_ANSWERS
        claims = [_claims(answer, self.slots, self.state, known.counts_rows) for answer in answers]
        self.codes = np.array([codes for codes, _ in claims])
        self.rows = [values for _, values in claims]
        self.codes[:, closed] *= self.codes[:, closed] == ROW  # Closed time is silent by itself.
        self.ledger = _Ledger(known.silences, self.slots)

    def verdict(self) -> Verdict:
        if not len(self.slots):
            return Verdict(activity=self.known.activity)
        if not self.codes.any():
            return self._nothing_said()
        live, unsure = self._believable()
        # Further answers reach beyond the first question. What they dispute there is asked about
        # by a job, or every answer would lead to a question about the next slot.
        disputed = unsure & covers([self.answers[0].question.interval], self.slots)
        contested = bool(disputed.any())
        if contested and not self.is_last:
            return self._only_ask(self._span(disputed))
        rows = self._settle_rows(live, unsure, least=2 if contested else 1)
        has_row = (self.codes[live] == ROW).any(axis=0)
        silences = self._settle_silences([] if contested else live, has_row)
        held = rows.held | silences.held | self._refused(live) | self._lost(live)
        ask = self._span(held) if held.any() and not self.is_last else None
        return Verdict(
            rows.bars,
            empty=self._intervals(silences.settled),
            withdrawn=rows.withdrawn,
            removed=tuple(self.slots[rows.removed].tolist()),
            refused=self._all_refused,
            ask=ask,
            recheck=rows.recheck,
            silences=self._open(has_row | silences.settled, rows.withdrawn),
            activity=self.known.activity if ask else self._activity(rows, silences),
        )

    def _only_ask(self, stretch: Interval) -> Verdict:
        known, hull = self.known, self._span(np.ones(len(self.slots), dtype=np.bool_))
        silences = [part for silence in known.silences if (part := silence.within(hull))]
        return Verdict(ask=stretch, silences=tuple(silences), activity=known.activity)

    def _nothing_said(self) -> Verdict:
        """Answers that claim nothing settle nothing, unless for days: a market may be dead.

        Then an exchange that serves windows has no other answer to a question behind the last bar.
        """
        last, behind = self.answers[-1], self.slots > self._newest
        silent = behind & (self.state == OPEN) & (self.slots < _young_ms(last))
        self.ledger.hear(silent & bool(self.known.newest_ms), np.zeros_like(silent), last)
        settled = silent & self.ledger.is_known & (last.at - self.ledger.first_at >= LATEST_MS)
        self.ledger.due[silent] = self.ledger.first_at[silent] + LATEST_MS
        ask = self._span(np.ones_like(silent)) if len(self.answers) < MOST_EMPTY else None
        return Verdict(
            empty=self._intervals(settled),
            refused=self._all_refused,
            ask=ask,
            silences=self._open(settled),
            activity=self.known.activity,
        )

    def _believable(self) -> tuple[list[int], Mask]:
        """The places of the answers that are not contradicted, and the slots on which it takes one
        more. The stored bars have a vote.
        """
        said = self._statements()
        live = list(range(len(self.answers)))
        while True:
            voters = said[[*live, -1]]
            both = (voters[:, None] > 0) & (voters[None] > 0)
            same = both & (voters[:, None] == voters[None])
            differ = both & ~same
            votes, against = same.sum(axis=1)[:-1], differ.sum(axis=1)[:-1]
            losses = ((against >= 2) & (votes == 1)).sum(axis=1)
            if losses.any():
                del live[int(losses.argmax())]
                continue
            alone = same[:-1, :-1].sum(axis=1) == 1
            rows = (voters > 1)[:-1]
            unsure = np.any(differ[:-1, -1] & alone, axis=0)
            unsure |= np.any(differ[:-1, :-1] & rows[:, None] & rows[None], axis=(0, 1))
            # A row against a silence, if no stored bar decides.
            opposed = (voters[:-1] == 1) & (voters[-1] == 0) & (against >= votes)
            outvoted = (opposed & (against > votes)).sum(axis=1)
            if not self.is_last or not outvoted.any():
                return live, unsure | np.any(opposed, axis=0)
            del live[int(outvoted.argmax())]

    def _statements(self) -> Codes:
        """What each answer says about every slot, and in the last line what is stored: 0 nothing,
        1 that it is empty, else a row; equal rows have equal numbers.
        """
        tables = [*self.rows, self.values]
        is_row = np.vstack([self.codes == ROW, self.state == BAR])
        said = np.zeros(is_row.shape, dtype=np.int8)
        said[:-1][self.codes == SILENT] = 1
        for i, table in enumerate(tables):
            said[i][is_row[i]] = i + 2
            for j in reversed(range(i)):
                same = is_row[i] & is_row[j] & (table == tables[j]).all(axis=1)
                said[i][same] = said[j][same]
        # Young bars change, so they contradict nobody.
        fresh_ms = max(answer.ended_ms for answer in self.answers) - REVISABLE_MS
        said[:, self.frame.ends(self.slots) > fresh_ms] = 0
        return said

    def _settle_rows(self, live: list[int], unsure: Mask, least: int) -> _Rows:
        state, codes = self.state, self.codes[live]
        bars, votes = self._bars_of(live), (codes == ROW).sum(axis=0)
        places = np.searchsorted(self.slots, bars.ts)
        values = np.zeros_like(self.values)
        values[places] = _table(bars)
        stored = state == BAR
        repeated = stored & (self.values == values).all(axis=1)
        held = np.zeros(len(self.slots), dtype=np.bool_)
        moves = _moves(bars)
        held[places] = _doubtful(self.known, bars, moves, _median_move(moves))
        held &= (votes == 1) & ~repeated
        scope = covers(union(answer.question.scope for answer in self.answers), self.slots)
        taken = (votes >= least) & ~held & ~unsure
        taken &= scope | (state != OPEN)
        withdrawn = union(map(self._near, self._intervals(taken & (state == NO_TRADE))))
        removed = stored & (votes == 0) & ((codes == SILENT).sum(axis=0) >= 2)
        changed = removed | (unsure & stored) | (taken & stored & ~repeated & (votes >= 2))
        recheck = [self._with_a_page(self._span(changed))] if changed.any() else []
        new = bars.only((taken & ~repeated)[places])
        return _Rows(new, taken, held, removed, withdrawn, union([*withdrawn, *recheck]))

    def _bars_of(self, live: list[int]) -> CandleBatch:
        """The bars of the range, the last answer's where several have one."""
        parts = []
        for i in live:
            bars = self.answers[i].bars
            places, rows = _places(self.slots, bars)
            parts.append(bars.take(rows[self.codes[i][places] == ROW]))
        if len(parts) == 1:
            return parts[0]
        batch = CandleBatch.concat(parts)
        return keep_last(batch.take(np.argsort(batch.ts, kind="stable")))

    def _lost(self, live: list[int]) -> Mask:
        """Slots that only answers spoke about which were dropped: nothing is known of them yet."""
        lost = np.zeros(len(self.slots), dtype=np.bool_)
        for i, answer in enumerate(self.answers):
            if i not in live and len(answer.bars):
                young = self.slots >= _young_ms(answer)
                lost |= covers([answer.question.scope], self.slots) & ~young
        lost &= ~self.codes[live].any(axis=0)
        return lost

    def _refused(self, live: list[int]) -> Mask:
        """Slots whose row was refused once: the exchange may send a valid one."""
        refused = np.zeros(len(self.slots), dtype=np.bool_)
        for row in self.answers[0].refused if len(self.answers) == len(live) == 1 else ():
            if row.ts is None:
                refused |= self.codes[0] != ROW
            else:
                refused |= self.slots == self.frame.floor(row.ts)
        refused &= self.state == OPEN
        return refused

    def _settle_silences(self, live: list[int], has_row: Mask) -> _Silences:
        known, ledger, codes, at = self.known, self.ledger, self.codes[live], self.answers[-1].at
        strong, behind = (codes == SILENT).any(axis=0), self.slots > self._newest
        silent = (self.state == OPEN) & ~has_row & (codes >= SILENT).any(axis=0)
        # Behind the newest bar no row can stand: one before it, and time, have to do.
        at_now = silent & behind & ~strong
        for i in live:
            mine = silent & (self.codes[i] >= SILENT)
            ledger.hear(mine, mine & ((self.codes[i] == SILENT) | behind), self.answers[i])
        length = np.zeros(len(self.slots), dtype=np.int64)
        is_ordinary, is_old = np.zeros_like(silent), np.zeros_like(silent)
        rows = np.unique(np.concatenate([known.bars.ts, *(self.answers[i].bars.ts for i in live)]))
        spans = _runs(silent)
        for start, end in spans:
            length[start:end] = slots = self._length(rows, start, end)
            is_ordinary[start:end] = known.activity.is_ordinary(slots)
            is_old[start:end] = self.frame.end(int(self.slots[end - 1])) + OLD_MS <= at
        density = self._density(codes)
        expected = density * length
        wait = np.clip(expected * self.frame.ms, SOONEST_MS, LATEST_MS).astype(np.int64)
        few = (expected <= FEW_ROWS) & ~at_now
        waited = ledger.last_at - ledger.first_at >= wait
        settled = silent & (is_ordinary | ((ledger.heard >= 2) & (few | waited)))
        rest = silent & ~settled
        by_longer = rest & is_old & (ledger.due == 0) & (known.longer is not None)
        by_longer &= (density < BUSY) | (expected <= FEW_ROWS)
        now = rest & ~by_longer & ~at_now & (few | ~strong)
        if len(self.answers) >= MOST_EMPTY:
            now &= strong
        ledger.due[rest] = np.maximum(ledger.first_at + wait, at + MINUTE_MS)[rest]
        ledger.due[by_longer] = 0
        lengths = [int(length[start]) for start, end in spans if settled[start:end].any()]
        return _Silences(settled, now, rest, lengths)

    def _density(self, codes: Codes) -> float:
        """Rows per slot: the market's, or those of the answers while nothing is known of it."""
        if self.known.activity.slots:
            return self.known.activity.density
        spoken = codes[codes.any(axis=1)]
        shares = (spoken == ROW).sum(axis=1) / (spoken > 0).sum(axis=1)
        return max(0.001, float(shares.min())) if len(spoken) else 1.0

    def _length(self, rows: Times, start: int, end: int) -> int:
        """Slots of the whole silence around a run, from the row before it to the one behind."""
        first, behind = int(self.slots[start]), self.frame.end(int(self.slots[end - 1]))
        place = int(np.searchsorted(rows, first))
        if 0 < place < len(rows):
            return max(1, self.frame.count(self.frame.end(int(rows[place - 1])), int(rows[place])))
        next_to = [
            part for part in self.known.empty if first <= part.to_ms and part.from_ms <= behind
        ]
        ends = [first, behind, *(ms for part in next_to for ms in (part.from_ms, part.to_ms))]
        ends += [*map(self.frame.end, rows[place - 1 : place].tolist()), *rows[place:][:1].tolist()]
        return max(1, self.frame.count(min(ends), max(ends)))

    def _activity(self, rows: _Rows, silences: _Silences) -> Activity:
        new = (self.state == OPEN) & (rows.taken | silences.settled | silences.waiting)
        bars = int(np.count_nonzero(new & rows.taken))
        move = _median_move(_moves(rows.bars))
        return self.known.activity.add(
            int(np.count_nonzero(new)), bars, silences.lengths, self.known.page, move
        )

    def _open(self, closed: Mask, withdrawn: Sequence[Interval] = ()) -> tuple[Silence, ...]:
        """The silences that stay open, `closed` slots having a row or being settled."""
        unsettled = (self.state == OPEN) & ~closed
        still = unsettled & self.ledger.is_known & ~covers(withdrawn, self.slots)
        return self.ledger.open(still, unsettled & ~still, self.frame)

    @property
    def _all_refused(self) -> tuple[Rejected, ...]:
        # By their text: a row as it came may hold lists.
        return tuple({repr(row): row for a in self.answers for row in a.refused}.values())

    @property
    def _newest(self) -> int:
        """When the newest bar opens, of the series or of the answers."""
        rows = [int(a.bars.ts[-1]) for a in self.answers if len(a.bars)]
        return max([self.known.newest_ms, *rows])

    def _span(self, slots: Mask) -> Interval:
        places = np.flatnonzero(slots)
        return Interval(int(self.slots[places[0]]), self.frame.end(int(self.slots[places[-1]])))

    def _intervals(self, slots: Mask) -> tuple[Interval, ...]:
        return unbroken(self.slots[slots], self.frame)

    def _near(self, row: Interval) -> Interval:
        """The settled silence around a slot, and a page on either side."""
        whole = next(part for part in self.known.empty if part.overlaps(row))
        return self._with_a_page(union([whole, row])[0])

    def _with_a_page(self, part: Interval) -> Interval:
        page = self.known.page
        first_ms = max(0, self.frame.shift(part.from_ms, -page))
        return Interval(first_ms, max(part.to_ms, self.frame.shift(part.to_ms, page)))


def _claims(answer: Answer, slots: Times, state: Codes, counts_rows: bool) -> tuple[Codes, Floats]:
    """What an answer claims about slots, and the values of its rows there."""
    asked, bars, frame = answer.question, answer.bars, answer.question.timeframe
    codes = np.zeros(len(slots), dtype=np.int8)
    inside = (slots >= asked.from_ms) & (slots < min(asked.to_ms, answer.ended_ms))
    if len(bars) and all(row.ts is not None for row in answer.refused):
        first, last = bars.ts[[0, -1]].tolist()
        # A full answer may lack its end or, where rows are not counted, its beginning.
        head = (slots < first) & (counts_rows or not answer.full)
        codes[inside & (head | ((slots > last) & (not answer.full)))] = EDGE
        # Outside the scope a silence settles nothing, but it contradicts a stored bar.
        codes[~covers([asked.scope], slots)] = NOTHING
        between = inside & (slots > first) & (slots < last)
        codes[between & ((state == BAR) | covers([asked.scope], slots))] = SILENT
        codes[slots >= _young_ms(answer)] = NOTHING
        refused = [frame.floor(row.ts) for row in answer.refused if row.ts is not None]
        codes[np.isin(slots, refused)] = NOTHING
    values = np.zeros((len(slots), 5))
    places, rows = _places(slots, bars)
    mine = inside[places]
    codes[places[mine]], values[places[mine]] = ROW, _table(bars)[rows[mine]]
    return codes, values


class _Ledger:
    """What was heard about every slot of a range: the numbers of a `Silence` behind its ends."""

    def __init__(self, silences: Iterable[Silence], slots: Times) -> None:
        self.slots = slots
        self.facts = np.zeros((len(slots), 5), dtype=np.int64)
        for silence in silences:
            first, last = np.searchsorted(slots, (silence.from_ms, silence.to_ms)).tolist()
            self.facts[first:last] = silence.document()[2:]
        self.heard, self.first_at, self.last_at, self.asked_from, self.due = self.facts.T

    @property
    def is_known(self) -> Mask:
        known: Mask = self.last_at > 0
        return known

    def hear(self, silent: Mask, strong: Mask, answer: Answer) -> None:
        """Notes that an answer has no row in some slots. It counts in those where the silence is
        `strong`, if it is another question's, or came later.
        """
        at, from_ms = answer.at, answer.question.from_ms
        new = self.heard == 0
        counts = strong & (new | (self.asked_from != from_ms) | (at >= self.last_at + SOONEST_MS))
        # Rounded up, and no more than two counted, so that the slots of a silence that grows by one
        # with every answer are alike.
        moment = -(-at // SOONEST_MS) * SOONEST_MS
        self.first_at[(silent & (self.first_at == 0)) | (counts & new)] = moment
        self.heard[counts] = np.minimum(self.heard[counts] + 1, 2)
        self.last_at[counts | (silent & new)] = at
        self.asked_from[counts | (silent & new)] = from_ms

    def open(self, still: Mask, unheard: Mask, frame: Timeframe) -> tuple[Silence, ...]:
        """The silences of slots that are `still` open. Those alike are one, also over settled slots
        between them, but not over open ones that no answer claimed to be empty.
        """
        places = np.flatnonzero(still)
        if not len(places):
            return ()
        facts, between = self.facts[places], np.cumsum(unheard)[places]
        new = (facts[1:] != facts[:-1]).any(axis=1) | (between[1:] != between[:-1])
        starts = np.concatenate(([0], np.flatnonzero(new) + 1))
        ends = np.append(starts[1:], len(places)) - 1
        opens, closes = self.slots[places[starts]], frame.ends(self.slots[places[ends]])
        columns = np.column_stack([opens, closes, facts[starts]])
        return tuple(Silence(*numbers) for numbers in columns.tolist())


# Longer bars


def longer_question(known: Known, turn: int = 0) -> Question | None:
    """A page of longer bars for the first silences that wait for them; None when none does.

    Two of them on either side are anchors. Every turn asks a little differently.
    """
    waiting = sorted(silence.interval for silence in known.silences if not silence.due_ms)
    if not waiting or known.longer is None:
        return None
    span = known.longer
    start = span.shift(waiting[0].from_ms, -2 - turn)
    most = span.shift(start, known.page)
    fits = [part.to_ms for part in waiting if span.shift(part.to_ms, 3 + turn) <= most]
    end = min(most, span.shift(max(fits, default=most), 3 + turn))
    return Question(span, start, end, span.count(start, end))


def confirm(known: Known, longer: Answer, *, is_last: bool = False) -> Verdict | None:
    """What an answer with longer bars settles of open silences; None to ask once more.

    A longer bar that is absent between two others confirms that its slots are empty. One with
    trades confirms the empty slots in it if its close is that of its last bar and its volume is
    the sum of theirs. One with more volume than its parts takes back what was heard there. An
    answer is dropped whole if it lacks a longer bar that has settled parts, or if its closes
    differ in half of the cases. What is left waits no longer: it is asked about in its own
    timeframe, and so is all of it when the last answer is dropped.
    """
    frame, span = known.timeframe, longer.question.timeframe
    low = span.ceil(longer.question.from_ms)
    high = max(low, min(longer.question.to_ms, longer.ended_ms))
    slots = frame.opens(low, high)
    waits = [silence for silence in known.silences if not silence.due_ms]
    ledger, (state, values) = _Ledger(waits, slots), _settled(known, slots)
    waiting = (state == OPEN) & ledger.is_known
    opens = span.opens(low, high)
    claims = _claims(longer, opens, np.zeros(len(opens), dtype=np.int8), known.counts_rows)
    believed = _compare(*claims, state, values, waiting, span.ms // frame.ms)
    if believed is None and not is_last:
        return None
    settled, doubted = believed or (np.zeros_like(waiting),) * 2
    ledger.due[waiting] = longer.at
    ledger.heard[doubted] = 0
    rest = ledger.open(waiting & ~settled, (state == OPEN) & ~waiting, frame)
    others = [silence for silence in known.silences if silence.due_ms]
    if low < high:
        waits = list(cut(waits, [Interval(low, high)]))
    joined = _runs((state == NO_TRADE) | settled)
    lengths = [end - start for start, end in joined if settled[start:end].any()]
    return Verdict(
        empty=unbroken(slots[settled], frame),
        silences=(*others, *waits, *rest),
        activity=known.activity.add(0, 0, lengths, known.page, 0.0),
    )


def _compare(
    codes: Codes, values: Floats, state: Codes, parts: Floats, waiting: Mask, size: int
) -> tuple[Mask, Mask] | None:
    """The waiting slots that longer bars settle, and those that are not empty; None to drop all.

    `codes` and `values` are claimed about the longer bars; `state` and `parts` are those of their
    slots, of which each has `size`.
    """
    shape = len(codes), size
    # A longer bar without volume is how some exchanges say that nothing was traded.
    codes = np.where((codes == ROW) & (values[:, 4] == 0), SILENT, codes)
    bar = (state == BAR).reshape(shape)
    trades = bar.any(axis=1)
    last = shape[1] - 1 - bar[:, ::-1].argmax(axis=1)
    closes = parts[:, 3].reshape(shape)[np.arange(shape[0]), last]
    volumes = np.where(bar, parts[:, 4].reshape(shape), 0).sum(axis=1)
    same_close = (codes == ROW) & trades & (values[:, 3] == closes)
    spoke = trades & ((codes == ROW) | (codes == SILENT))
    lacks = (codes == SILENT) & trades
    if not spoke.any() or lacks.any() or same_close.sum() < 0.5 * spoke.sum():
        return None
    volume = values[:, 4]
    same = same_close & (np.abs(volume - volumes) <= 1e-6 * np.maximum(volumes, 1))
    whole = trades & (codes == ROW) & (state != OPEN).reshape(shape).all(axis=1)
    if np.count_nonzero(whole & ~same) > SUMS_DIFFER * np.count_nonzero(whole):
        same[:] = False
    unheard = ((state == OPEN) & ~waiting).reshape(shape).any(axis=1)
    silent = ~trades & (codes == SILENT)
    settled = waiting & np.repeat((silent | same) & ~unheard, shape[1])
    more = (codes == ROW) & (~trades | (~same & (volume > volumes)))
    return settled, waiting & ~settled & np.repeat(more, shape[1])


# Bars that do not fit their neighbours


def _doubtful(known: Known, bars: CandleBatch, moves: Floats, median: float) -> Mask:
    """Bars far from the one before or behind them, and a last one that repeats the one before.

    The known bars next to them count as neighbours. Without a median there is no scale.
    """
    found = np.zeros(len(bars), dtype=np.bool_)
    if not len(bars):
        return found
    scale = median or known.activity.move
    before = known.bars.take(known.bars.ts < bars.ts[0]).take(slice(-1, None))
    if scale:
        far = moves > JUMP * scale
        if far.any():  # A jump between two bars is a move of the second one.
            found |= far
            found[:-1] |= np.abs(bars.o[1:] - bars.c[:-1]) > JUMP * scale
        behind = known.bars.take(known.bars.ts > bars.ts[-1]).take(slice(0, 1))
        if len(before) and abs(bars.o[0] - before.c[0]) > JUMP * scale:
            found[0] = True
        if len(behind) and abs(behind.o[0] - bars.c[-1]) > JUMP * scale:
            found[-1] = True
    line = bars if len(bars) > 1 else CandleBatch.concat([before, bars])
    last = _table(line.take(slice(-2, None)))
    if len(last) > 1 and line.v[-1] > 0 and (last[0] == last[1]).all():
        found[-1] = True
    return found


def _moves(bars: CandleBatch) -> Floats:
    """The range of each bar, or its jump from the last close if that is more."""
    ranges: Floats = bars.h - bars.l
    if len(bars) < 2:
        return ranges
    jumps = np.abs(bars.o[1:] - bars.c[:-1])
    return np.maximum(ranges, np.concatenate(([0.0], jumps)))


def _median_move(moves: Floats) -> float:
    """The median of the bars that moved; 0 when too few did.

    In a market with few trades most bars are one trade, and by the median of all bars every second
    minute would be out of the ordinary.
    """
    moved = moves[moves > 0]
    if len(moved) < FEWEST_MOVES:
        return 0.0
    # Not numpy's median, which loads its masked arrays: 20 ms of a process's start. To sort is
    # faster than to partition, because it is vectorized.
    return float(np.sort(moved)[len(moved) // 2])


# Slots and times


def _slots_of(answers: Sequence[Answer]) -> tuple[Times, Mask]:
    """The slots that have ended of all that was asked, and which are closed time with a bar."""
    frame = answers[0].question.timeframe
    low = frame.ceil(min(answer.question.from_ms for answer in answers))
    high = max(min(answer.question.to_ms, answer.ended_ms) for answer in answers)
    slots = frame.opens(low, max(low, high))
    if frame.slots is None:
        return slots, np.zeros(len(slots), dtype=np.bool_)
    rows = np.concatenate([answer.bars.ts for answer in answers])
    both = np.union1d(slots, rows[(rows >= low) & (rows < high)])
    return both, ~np.isin(both, slots)


def _settled(known: Known, slots: Times) -> tuple[Codes, Floats]:
    """The state of slots, and the values of the bars there."""
    state, values = np.zeros(len(slots), dtype=np.int8), np.zeros((len(slots), 5))
    state[covers(known.empty, slots)] = NO_TRADE
    places, rows = _places(slots, known.bars)
    state[places], values[places] = BAR, _table(known.bars)[rows]
    return state, values


def _places(slots: Times, bars: CandleBatch) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of bars among the slots, and which of the bars these are."""
    places = np.searchsorted(slots, bars.ts)
    rows = np.flatnonzero(places < len(slots))
    rows = rows[slots[places[rows]] == bars.ts[rows]]
    return places[rows], rows


def _table(bars: CandleBatch) -> Floats:
    return np.column_stack([bars.o, bars.h, bars.l, bars.c, bars.v])


def _young_ms(answer: Answer) -> int:
    """Where the slots begin about which an answer's silence says nothing."""
    frame = answer.question.timeframe
    return frame.shift(answer.ended_ms, -young_slots(frame))


def _runs(mask: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _power(length: int) -> int:
    return min(LENGTHS, max(1, length).bit_length()) - 1
