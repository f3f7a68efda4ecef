"""What is believed of answers: the rule of `collector/pipeline/evidence.py`, line by line."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from collector.durations import DAY_MS, HOUR_MS, MINUTE_MS
from collector.market.answer import Answer, Question
from collector.market.bar_rows import BarRows
from collector.market.calendar.fx import FX
from collector.market.candles import CandleBatch
from collector.market.interval import Interval
from collector.market.timeframe import MINUTE, Timeframe
from collector.pipeline.evidence import (
    LATEST_MS,
    MOST_EMPTY,
    SOONEST_MS,
    Activity,
    Known,
    Silence,
    Verdict,
    confirm,
    longer_question,
    question_about,
    weigh,
    weigh_usual,
)
from tests.support.bars import at, recorded, span

if TYPE_CHECKING:
    from collections.abc import Iterable

    Row = tuple[Any, ...]

HOUR = Timeframe.parse("1h")
PAGE = 1000
NOW = 2_000
"""The slot that is running: everything that is asked about ended less than two days before."""
BUSY = Activity().add(50_000, 50_000, (), PAGE, 2.0)
SPARSE = Activity().add(50_000, 15_000, [1, 2] * 100, PAGE, 2.0)
"""Three rows in ten slots, and silences of up to three slots every day."""


def row(slot: int, price: float | None = None) -> Row:
    price = 100.0 + slot * 7 % 11 if price is None else price
    return (at(slot), price, price + 1, price - 1, price, 1.0 + slot % 5, None)


def rows_of(slots: Iterable[int | Row]) -> list[Row]:
    return [row(each) if isinstance(each, int) else each for each in slots]


def answer(
    first: int,
    end: int,
    rows: Iterable[int | Row] | None = None,
    *,
    now: float = NOW,
    full: bool = False,
    about: Interval | None = None,
) -> Answer:
    """An answer to a question for slots `[first, end)`: a row in each of them if none are given."""
    sent = BarRows.of(rows_of(range(first, end) if rows is None else rows))
    question = Question(MINUTE, at(first), at(end), PAGE, about)
    at_ms = at(0) + round(now * MINUTE_MS)
    return Answer(question, sent, full=full, ended_ms=at(int(now)), at=at_ms)


def known(slots: Iterable[int | Row] = (), **other: Any) -> Known:
    """What is known when these slots have bars."""
    return replace(Known(MINUTE, PAGE), bars=CandleBatch.of(rows_of(slots)), **other)


def without(first: int, end: int, *gone: int) -> list[int | Row]:
    return [slot for slot in range(first, end) if slot not in gone]


def but(first: int, end: int, *others: Row) -> list[int | Row]:
    """The rows of a range, some of them replaced."""
    by_slot = {(each[0] - at(0)) // MINUTE_MS: each for each in others}
    return [by_slot.get(slot, slot) for slot in range(first, end)]


def slots(bars: CandleBatch) -> list[int]:
    return [(ts - at(0)) // MINUTE_MS for ts in bars.ts.tolist()]


def price(verdict: Verdict, slot: int) -> float | None:
    """The open of the bar that a verdict has for a slot; None when it has none."""
    return dict(zip(slots(verdict.bars), verdict.bars.o.tolist(), strict=True)).get(slot)


def is_open(verdict: Verdict, slot: int) -> bool:
    settled = any(each.overlaps(span(slot, slot + 1)) for each in verdict.empty)
    return price(verdict, slot) is None and not settled


# What settles a slot


def test_a_row_that_fits_its_neighbours_takes_one_answer() -> None:
    verdict = weigh(known(activity=BUSY), [answer(0, 100)])
    assert slots(verdict.bars) == list(range(100))
    assert (verdict.empty, verdict.ask, verdict.silences) == ((), None, ())
    assert weigh_usual(known(activity=BUSY), answer(0, 100)) is not None


def test_a_row_that_jumps_takes_two_answers_with_equal_values() -> None:
    jump = row(50, price=1000.0)
    first = answer(0, 100, but(0, 100, jump))
    verdict = weigh(known(activity=BUSY), [first])
    assert verdict.ask == span(49, 52), "and the bars on either side of it"
    assert is_open(verdict, 50)
    insists = answer(30, 70, but(30, 70, jump))
    verdict = weigh(known(activity=BUSY), [first, insists])
    assert (price(verdict, 50), verdict.ask) == (1000.0, None)


def test_a_jump_against_known_bars_takes_two_answers() -> None:
    """Without a shared row another symbol's page is seen at its border."""
    page = answer(0, 100, [row(slot, price=5.0) for slot in range(100)])
    for neighbour in (-1, 100):
        verdict = weigh(known([neighbour], activity=BUSY), [page])
        assert verdict.ask is not None
        assert is_open(verdict, 0 if neighbour < 0 else 99)


def test_a_last_row_that_repeats_the_one_before_takes_two_answers() -> None:
    stale = (at(99), *row(98)[1:])
    first = answer(0, 100, but(0, 100, stale))
    verdict = weigh(known(activity=BUSY), [first])
    assert verdict.ask == span(99, 100)
    assert is_open(verdict, 99)
    verdict = weigh(known(activity=BUSY), [first, answer(98, 100, but(98, 100, stale))])
    assert (price(verdict, 99), verdict.ask) == (stale[1], None)


def test_a_repeated_row_is_no_news_inside_a_page_or_without_trades() -> None:
    stale = (at(50), *row(49)[1:])
    assert weigh(known(activity=BUSY), [answer(0, 100, but(0, 100, stale))]).ask is None
    quiet = [(at(slot), 5.0, 5.0, 5.0, 5.0, 0.0, None) for slot in range(10)]
    assert weigh(known(), [answer(0, 10, quiet)]).ask is None


def test_a_single_row_is_compared_with_the_known_bar_before_it() -> None:
    stale = (at(50), *row(49)[1:])
    verdict = weigh(known(range(50), activity=BUSY), [answer(50, 51, [stale])])
    assert (len(verdict.bars), verdict.ask) == (0, span(50, 51))


def test_a_market_with_few_trades_is_measured_by_the_bars_that_moved() -> None:
    single = [(at(slot), 100.0, 100.0, 100.0, 100.0, 1.0, None) for slot in range(300)]
    moved = [(*each[:2], 101.0, *each[3:]) if n % 5 == 0 else each for n, each in enumerate(single)]
    for rows, largest, is_kept in ((moved, 119.0, True), (moved, 122.0, False)):
        rows = [*rows[:150], (at(150), 100.0, largest, 100.0, 100.0, 1.0, None), *rows[151:]]
        rows[-1] = row(299, price=100.0)
        verdict = weigh(known(), [answer(0, 300, rows)])
        assert (price(verdict, 150) is not None) == is_kept


@pytest.mark.parametrize("name", ["UNITTEST_BTC-1m", "XRP_ETH-1m"])
def test_no_real_bar_takes_a_second_answer(name: str) -> None:
    real = recorded(name)
    for start in range(0, len(real), PAGE):
        page = real.take(slice(start, start + PAGE))
        end = int(page.ts[-1]) + MINUTE_MS
        question = Question(MINUTE, int(page.ts[0]), end, PAGE)
        reply = Answer(question, BarRows.of_bars(page), ended_ms=end + DAY_MS, at=end + DAY_MS)
        state = replace(known(activity=BUSY), bars=real.take(slice(max(0, start - 1), start)))
        assert len(weigh(state, [reply]).bars) == len(page)


def test_an_ordinary_silence_takes_one_answer() -> None:
    verdict = weigh(known(activity=SPARSE), [answer(0, 100, without(0, 100, 40, 41))])
    assert verdict.empty == (span(40, 42),)
    assert (verdict.ask, verdict.silences) == (None, ())


def test_an_ordinary_silence_at_an_edge_takes_one_answer() -> None:
    verdict = weigh(known(activity=SPARSE), [answer(0, 100, range(2, 98))])
    assert verdict.empty == (span(0, 2), span(98, 100))
    assert (verdict.ask, verdict.silences) == (None, ())


def test_a_full_answer_claims_nothing_behind_its_last_row() -> None:
    verdict = weigh(known(activity=SPARSE), [answer(0, 100, range(98), full=True)])
    assert (verdict.empty, verdict.ask, verdict.silences) == ((), None, ())


def test_a_full_answer_claims_something_before_its_first_row_only_where_rows_are_counted() -> None:
    state, cut = known(activity=SPARSE), answer(0, 100, range(2, 100), full=True)
    assert weigh(state, [cut]).empty == ()
    assert weigh(replace(state, counts_rows=True), [cut]).empty == (span(0, 2),)


def test_in_a_market_that_always_trades_one_empty_slot_is_asked_about_again() -> None:
    verdict = weigh(known(activity=BUSY), [answer(0, 100, without(0, 100, 40))])
    assert (verdict.empty, verdict.ask) == ((), span(40, 41))
    assert len(verdict.bars) == 99


def test_a_length_is_ordinary_once_it_was_settled_twice_and_in_one_page_of_a_hundred() -> None:
    once, twice = (Activity().add(50_000, 50_000, [2] * n, PAGE, 2.0) for n in (1, 2))
    assert not once.is_ordinary(2)
    assert twice.is_ordinary(2)
    assert twice.is_ordinary(1), "up to four times as long"
    assert not twice.is_ordinary(4)
    assert not replace(twice, pages=300.0).is_ordinary(2)
    many = Activity().add(50_000, 50_000, [11] * 50, PAGE, 2.0)
    assert many.is_ordinary(10)
    assert not many.is_ordinary(11), "more than ten rows are expected in it"


def test_what_a_market_did_long_ago_fades() -> None:
    quiet = Activity().add(50_000, 15_000, [2] * 10, PAGE, 2.0)
    later = quiet
    for _ in range(1000):
        later = later.add(PAGE, PAGE, (), PAGE, 2.0)
    assert (quiet.is_ordinary(2), later.is_ordinary(2)) == (True, False)
    assert (quiet.density, round(later.density, 2)) == (0.3, 1.0)


def test_the_activity_of_stored_bars_is_counted() -> None:
    bars = CandleBatch.of(rows_of(without(0, 2000, 50, 51, 70)))
    activity = Activity.of(bars, [span(0, 1000), span(1100, 2000)], MINUTE, PAGE)
    assert (activity.pages, activity.slots, activity.silences[:3]) == (1.9, 1900, (1, 1, 0))
    assert activity.move > 0


def test_few_expected_rows_take_a_second_answer_to_another_question_at_once() -> None:
    silent = answer(0, 100, without(0, 100, *range(40, 60)))
    verdict = weigh(known(activity=SPARSE), [silent])
    assert (verdict.empty, verdict.ask) == ((), span(40, 60))
    [heard] = verdict.silences
    assert (heard.interval, heard.heard) == (span(40, 60), 1)
    other = answer(38, 62, without(38, 62, *range(40, 60)), now=NOW + 0.1)
    verdict = weigh(known(activity=SPARSE), [silent, other])
    assert (verdict.empty, verdict.ask, verdict.silences) == ((span(40, 60),), None, ())


def test_two_answers_to_the_same_question_within_ten_minutes_count_once() -> None:
    silent = [answer(0, 100, without(0, 100, 40), now=NOW + wait) for wait in (0, 9, 10)]
    verdict = weigh(known(activity=BUSY), silent[:2])
    assert (verdict.empty, verdict.ask) == ((), span(40, 41))
    verdict = weigh(known(activity=BUSY), [silent[0], silent[2]])
    assert verdict.empty == (span(40, 41),)


@pytest.mark.parametrize(("length", "minutes"), [(11, 11), (200, 200)])
def test_many_expected_rows_take_a_second_answer_after_as_long_as_they_take(
    length: int, minutes: int
) -> None:
    silent = range(40, 40 + length)
    verdict = weigh(known(activity=BUSY), [answer(0, 300, without(0, 300, *silent))])
    assert (verdict.empty, verdict.ask) == ((), None), "a second answer at once says no more"
    [heard] = verdict.silences
    assert heard.due_ms == at(NOW + minutes)
    state = known(activity=BUSY, silences=(heard,))
    early, late = (
        weigh(state, [answer(30, 290, without(30, 290, *silent), now=NOW + wait)])
        for wait in (minutes - 1, minutes)
    )
    assert early.empty == ()
    assert early.silences[0].heard == 2
    assert late.empty == (span(40, 40 + length),)
    assert late.silences == ()


def test_the_wait_is_at_least_ten_minutes_and_at_most_three_days() -> None:
    def wait(activity: Activity, length: int) -> int:
        end = length + 10
        page = answer(0, end, [*range(5), *range(length + 5, end)], now=20_000)
        [heard] = weigh(known(activity=activity), [page]).silences
        return heard.due_ms - heard.first_at

    assert wait(SPARSE, 20) == SOONEST_MS == 10 * MINUTE_MS
    assert wait(SPARSE, 400) == 120 * MINUTE_MS
    assert wait(BUSY, 10_000) == LATEST_MS == 3 * DAY_MS


def test_an_edge_silence_counts_once_it_has_anchors() -> None:
    state = known(activity=BUSY, newest_ms=at(500))
    edge = answer(0, 100, range(95))
    verdict = weigh(state, [edge])
    assert (verdict.empty, verdict.ask) == ((), span(95, 100))
    again = weigh(state, [edge, answer(2, 100, range(2, 95))])
    assert again.empty == ()
    assert [each.heard for each in again.silences] == [0], "heard at an edge only"
    anchored = [answer(n, 102, [*range(n, 95), 100, 101]) for n in (3, 4)]
    verdict = weigh(state, [edge, anchored[0]])
    assert (verdict.empty, verdict.ask) == ((), span(95, 100))
    assert weigh(state, [edge, *anchored]).empty == (span(95, 100),)


def test_rows_outside_the_question_are_anchors_and_nothing_else() -> None:
    outside = answer(40, 60, [38, 39, 60, 61])
    verdict = weigh(known(activity=SPARSE), [outside])
    assert not len(verdict.bars)
    assert [each.heard for each in verdict.silences] == [1]
    assert verdict.silences[0].interval == span(40, 60)


def test_what_is_not_asked_about_is_compared_and_not_settled() -> None:
    page = answer(0, 100, without(0, 100, 3, 50), about=span(10, 100))
    verdict = weigh(known(activity=SPARSE), [page])
    assert verdict.empty == (span(50, 51),)
    assert slots(verdict.bars) == without(10, 100, 50)
    state = known([row(5, price=104.5)], activity=SPARSE)
    assert weigh(state, [page]).ask == span(5, 6), "the shared row differs"
    late = answer(0, 100, range(4, 100), about=span(10, 100))
    verdict = weigh(replace(known(activity=BUSY), counts_rows=True), [late])
    assert (verdict.empty, verdict.silences, verdict.ask) == ((), (), None), "before the first row"


def test_a_stored_bar_is_not_stored_again() -> None:
    verdict = weigh(known(range(50), activity=BUSY), [answer(0, 100)])
    assert slots(verdict.bars) == list(range(50, 100))


def test_to_change_a_settled_bar_takes_two_answers_that_agree() -> None:
    state = known(but(0, 100, row(50, price=104.5)), activity=BUSY)
    first = answer(0, 100)
    verdict = weigh(state, [first])
    assert (len(verdict.bars), verdict.ask) == (0, span(50, 51))
    verdict = weigh(state, [first, answer(45, 55)])
    assert slots(verdict.bars) == [50]
    assert verdict.recheck == (Interval(at(50 - PAGE), at(51 + PAGE)),), "a page on either side"


def test_a_bar_that_ended_within_ten_minutes_is_revised_by_one_answer() -> None:
    young, old = NOW - 10, NOW - 11
    state = known(but(old, NOW, *(row(slot, 104.5) for slot in (old, young))), activity=BUSY)
    verdict = weigh(state, [answer(young, NOW)])
    assert (slots(verdict.bars), verdict.ask, verdict.recheck) == ([young], None, ())
    assert weigh(state, [answer(old, NOW)]).ask == span(old, old + 1)


def test_to_remove_a_settled_bar_takes_two_answers_that_agree() -> None:
    """D8. The answer that made it has no second vote as the stored bar."""
    state = known(range(100), activity=SPARSE)
    lacks = [answer(n, 100 - n, without(n, 100 - n, 50)) for n in (0, 2)]
    verdict = weigh(state, lacks[:1])
    assert (verdict.removed, verdict.ask) == ((), span(50, 51))
    verdict = weigh(state, lacks)
    assert (verdict.removed, verdict.ask) == ((at(50),), None)
    assert verdict.recheck == (Interval(at(50 - PAGE), at(51 + PAGE)),)


def test_a_young_bar_is_not_removed_by_one_answer_either() -> None:
    state = known(range(NOW - 50, NOW), activity=BUSY)
    lacks = answer(NOW - 50, NOW, without(NOW - 50, NOW, NOW - 6))
    assert weigh(state, [lacks]).removed == ()


def test_a_stored_bar_is_not_removed_by_silences_at_an_edge() -> None:
    state = known(range(100), activity=BUSY)
    verdict = weigh(state, [answer(n, 100, range(n, 90)) for n in (0, 2)])
    assert (verdict.removed, verdict.ask) == ((), None)


# Contradiction


def test_of_different_rows_a_third_answer_decides_and_the_other_is_dropped_whole() -> None:
    false = answer(0, 100, but(0, 100, row(10, price=104.5), row(50, price=104.5)))
    true = answer(40, 100)
    verdict = weigh(known(activity=BUSY), [false, true])
    assert (len(verdict.bars), verdict.ask) == (0, span(50, 51))
    verdict = weigh(known(activity=BUSY), [false, true, answer(48, 53)])
    assert slots(verdict.bars) == list(range(40, 100))
    assert price(verdict, 50) == row(50)[1]
    assert verdict.ask == span(0, 40), "of these slots only the dropped answer spoke"


def test_a_third_answer_decides_between_a_row_and_a_silence() -> None:
    silent = answer(0, 100, without(0, 100, 20, 50))
    assert weigh(known(activity=SPARSE), [silent, answer(40, 100)]).ask == span(50, 51)
    verdict = weigh(known(activity=SPARSE), [silent, answer(40, 100), answer(41, 100)])
    assert slots(verdict.bars) == list(range(40, 100))
    assert (verdict.empty, verdict.silences) == ((), ()), "nor is its other silence believed"
    assert verdict.ask == span(0, 40)


def test_a_row_of_one_answer_loses_to_two_that_are_silent() -> None:
    ghost = answer(0, 100)
    silent = [answer(n, 100, without(n, 100, 50)) for n in (1, 2)]
    verdict = weigh(known(activity=BUSY), [ghost, *silent])
    assert verdict.empty == (span(50, 51),)
    assert slots(verdict.bars) == without(1, 100, 50)


def test_an_answer_against_a_settled_bar_is_dropped_if_the_next_one_agrees_with_the_bar() -> None:
    state = known(range(40, 60), activity=BUSY)
    false = answer(0, 100, but(0, 100, row(50, price=104.5)))
    assert weigh(state, [false]).ask == span(50, 51)
    verdict = weigh(state, [false, answer(30, 70)])
    assert slots(verdict.bars) == [*range(30, 40), *range(60, 70)]
    assert (verdict.removed, verdict.recheck) == ((), ())
    assert verdict.ask == span(0, 100), "the rest of the dropped answer's slots"
    everything = known(range(100), activity=BUSY)
    verdict = weigh(everything, [false, answer(30, 70)])
    assert (len(verdict.bars), verdict.ask) == (0, span(0, 100)), "nothing has confirmed them yet"


def test_a_row_in_a_settled_silence_withdraws_it_and_a_page_on_either_side() -> None:
    state = known(activity=SPARSE, empty=(span(30, 31), span(40, 60)))
    verdict = weigh(state, [answer(35, 65, [*range(35, 40), 50, *range(60, 65)])])
    around = (Interval(at(40 - PAGE), at(60 + PAGE)),)
    assert (verdict.withdrawn, verdict.recheck) == (around, around)
    assert price(verdict, 50) == row(50)[1]


def test_silences_near_one_that_is_withdrawn_are_heard_anew() -> None:
    heard = Silence(at(62), at(64), 1, at(NOW), at(NOW), at(0), at(NOW))
    state = known(activity=BUSY, empty=(span(40, 60),), silences=(heard,))
    verdict = weigh(state, [answer(35, 70, [*range(35, 40), 50, 60, 61, *range(65, 70)])])
    assert (verdict.silences, len(verdict.withdrawn)) == ((), 1)


def test_after_five_answers_disputed_slots_are_missing_and_two_that_agree_settle_the_others() -> (
    None
):
    answers = [answer(n, 100, but(n, 100, row(50, price=101.0 + n))) for n in range(5)]
    for count in (2, 3, 4):
        verdict = weigh(known(activity=BUSY), answers[:count])
        assert (len(verdict.bars), verdict.ask) == (0, span(50, 51))
    verdict = weigh(known(activity=BUSY), answers)
    assert verdict.ask is None
    assert is_open(verdict, 50)
    assert slots(verdict.bars)[-50:] == [49, *range(51, 100)]
    verdict = weigh(known([50], activity=BUSY), answers)
    assert (price(verdict, 50), verdict.removed) == (None, ()), "a stored bar stays"
    assert verdict.recheck == (Interval(at(50 - PAGE), at(51 + PAGE)),)


@pytest.mark.parametrize(
    ("rows", "silences", "is_bar"), [(1, 1, False), (2, 2, False), (3, 2, True)]
)
def test_after_five_answers_more_rows_than_silences_are_a_bar(
    rows: int, silences: int, is_bar: bool
) -> None:
    answers = [answer(n, 100) for n in range(rows)]
    answers += [answer(n, 100, without(n, 100, 50)) for n in range(5, 5 + silences)]
    answers += [answer(n, 100, ()) for n in range(10, 15)]
    verdict = weigh(known(activity=BUSY), answers[:5])
    assert (verdict.ask, verdict.empty) == (None, ())
    assert (price(verdict, 50) is not None) == is_bar


def test_after_five_answers_a_row_of_only_one_of_them_is_missing() -> None:
    answers = [answer(60, 100, but(60, 100, row(80, price=101.0 + n))) for n in range(4)]
    verdict = weigh(known(activity=BUSY), [*answers, answer(0, 100)])
    assert slots(verdict.bars) == without(60, 100, 80)


# The ends


def test_a_silence_before_the_first_bar_is_not_settled_by_answers_that_begin_with_it() -> None:
    answers = [answer(n, 200, range(100, 200)) for n in range(5)]
    for count in range(1, 6):
        assert weigh(known(activity=BUSY), answers[:count]).empty == ()


def test_a_silence_at_the_edge_of_now_is_not_covered() -> None:
    state = known(activity=BUSY)
    verdict = weigh(state, [answer(0, NOW, range(NOW - 10))])
    assert (verdict.empty, verdict.ask) == ((), None)
    [heard] = verdict.silences
    assert heard.interval == span(NOW - 10, NOW - 3), "three slots are too young to be missed"
    assert weigh(state, [answer(0, NOW)]).silences == (), "then all bars are here"


def test_at_the_edge_of_now_two_answers_settle_after_the_wait() -> None:
    first = weigh(known(activity=BUSY), [answer(1900, NOW, range(1900, 1990))])
    state = known(range(1900, 1990), activity=BUSY, silences=first.silences, newest_ms=at(1989))
    early, late = (
        weigh(state, [answer(1901, 1998, range(1901, 1990), now=NOW + wait)]) for wait in (9, 10)
    )
    assert early.empty == ()
    assert late.empty == (span(1990, 1997),)


def test_a_dead_market_settles_after_three_days_of_empty_answers() -> None:
    state = known(range(50), activity=BUSY, newest_ms=at(49))
    verdict = weigh(state, [answer(n, 1000, ()) for n in (40, 50, 45)])
    assert (verdict.empty, verdict.ask) == ((), None)
    assert verdict.silences[0].interval == span(50, 1000)
    state = replace(state, silences=verdict.silences)
    days = 3 * DAY_MS // MINUTE_MS
    early, late = (
        weigh(state, [answer(45 + n, 1000, (), now=NOW + days - 1 + n) for n in range(2)][:end])
        for end in (1, 2)
    )
    assert early.empty == ()
    assert late.empty == (span(50, 1000),)


def test_empty_answers_claim_nothing_about_the_past() -> None:
    state = known([*range(50), *range(100, 150)], activity=SPARSE, newest_ms=at(149))
    for count in range(1, 6):
        verdict = weigh(state, [answer(n, 120, (), now=NOW + 11 * n) for n in range(count)])
        assert (verdict.empty, verdict.silences, verdict.removed) == ((), (), ())
        assert (verdict.ask is None) == (count >= MOST_EMPTY), "more at once say no more"


# The defects that led to the rule


@pytest.mark.parametrize("count", range(1, 6))
def test_the_newest_rows_settle_no_slot_of_an_old_question(count: int) -> None:
    """D1."""
    now = 500_000
    newest = [answer(n, 1000, range(now - PAGE, now), now=now, full=True) for n in range(count)]
    for activity in (Activity(), BUSY, SPARSE):
        verdict = weigh(known(activity=activity), newest)
        assert (len(verdict.bars), verdict.empty, verdict.removed) == (0, (), ())


def test_a_stale_last_row_of_a_second_answer_does_not_win() -> None:
    """D3."""
    first = answer(0, 100, without(0, 100, 20))
    stale = answer(10, 60, but(10, 60, (at(59), *row(58)[1:])))
    verdict = weigh(known(activity=BUSY), [first, stale])
    assert verdict.ask == span(20, 60), "with the slot that one of them lacks"
    verdict = weigh(known(activity=BUSY), [first, stale, answer(15, 65), answer(14, 65)])
    assert price(verdict, 59) == row(59)[1]
    assert verdict.bars.o.tolist() == [row(slot)[1] for slot in slots(verdict.bars)]


def test_a_differing_row_in_a_slot_that_was_never_in_doubt_does_not_win() -> None:
    """D3."""
    first = answer(0, 100, without(0, 100, 20))
    differs = answer(10, 60, but(10, 60, row(40, price=104.5)))
    assert weigh(known(activity=BUSY), [first, differs]).ask == span(20, 41)
    verdict = weigh(known(activity=BUSY), [first, differs, answer(15, 45), answer(14, 45)])
    assert price(verdict, 40) == row(40)[1]
    assert verdict.bars.o.tolist() == [row(slot)[1] for slot in slots(verdict.bars)]


def test_after_an_empty_answer_one_that_lacks_a_row_is_asked_again() -> None:
    """D4."""
    empty, lacks = answer(0, 100, ()), answer(1, 100, without(1, 100, 50))
    assert weigh(known(activity=BUSY), [empty]).ask == span(0, 100)
    assert weigh(known(activity=BUSY), [empty, lacks]).ask == span(50, 51)
    assert weigh(known(activity=BUSY), [empty, lacks, answer(0, 100)]).ask == span(50, 51)
    verdict = weigh(known(activity=BUSY), [empty, lacks, answer(0, 100), answer(2, 100)])
    assert slots(verdict.bars) == list(range(100))
    assert verdict.empty == ()


def test_another_symbols_page_is_dropped_whole() -> None:
    """D5. The page begins at the last bar of the one before, and differs there."""
    state = known(range(100), activity=BUSY)
    other = answer(99, 200, [row(slot, price=104.0 + slot % 2) for slot in range(99, 200)])
    assert weigh(state, [other]).ask == span(99, 100)
    verdict = weigh(state, [other, answer(98, 101)])
    assert (slots(verdict.bars), verdict.ask) == ([100], span(101, 200))
    verdict = weigh(state, [other, answer(98, 101), answer(97, 200)])
    assert verdict.ask is None
    assert verdict.bars.o.tolist() == [row(slot)[1] for slot in range(100, 200)]


def test_another_symbols_page_as_the_very_first_one_is_found_by_the_next_one() -> None:
    """D5. Its last bar is stored, and two answers that agree change it."""
    state = known([row(slot, price=97.5) for slot in range(100)], activity=BUSY)
    pages = [answer(99, 200), answer(98, 200)]
    assert weigh(state, pages[:1]).ask == span(99, 100)
    verdict = weigh(state, pages)
    assert (slots(verdict.bars), verdict.ask) == (list(range(99, 200)), None)
    # 98 lies outside the first question, and one answer alone contradicts it.
    assert verdict.recheck == (Interval(at(98 - PAGE), at(100 + PAGE)),), "a page on either side"


@pytest.mark.parametrize("lie", ["empty", "stale", "late"])
def test_twelve_minutes_of_lies_at_the_edge_of_now_settle_nothing_as_empty(lie: str) -> None:
    """D6. The market trades every minute, and each poll asks from a known bar on."""
    behind = {"empty": 1000, "stale": None, "late": 9}[lie]
    state = known(range(100), activity=BUSY, newest_ms=at(99))
    for now in range(101, 114):
        start = 97 + now % 2
        last = 95 if behind is None else now - behind
        rows = [slot for slot in range(start, now) if slot <= last]
        verdict = weigh(state, [answer(start, now, rows, now=now + 0.1)])
        assert (verdict.empty, verdict.removed) == ((), ())
        bars = CandleBatch.concat([state.bars, verdict.bars])
        newest = int(bars.ts[-1])
        state = replace(state, bars=bars, silences=verdict.silences, newest_ms=newest)
    verdict = weigh(state, [answer(97, 115, now=115)])
    assert slots(CandleBatch.concat([state.bars, verdict.bars])) == list(range(115))
    assert verdict.silences == ()


# Rows that were refused


def test_a_refused_row_is_asked_about_once_more_and_its_slot_is_not_empty() -> None:
    bad = (at(50), 0, 0, 0, 0, 1, None)
    first = answer(0, 100, but(0, 100, bad))
    verdict = weigh(known(activity=SPARSE), [first])
    assert verdict.ask == span(50, 51)
    assert [each.reason for each in verdict.refused] == ["price"]
    assert is_open(verdict, 50)
    verdict = weigh(known(activity=SPARSE), [first, answer(40, 60, but(40, 60, bad))])
    assert verdict.ask is None
    assert is_open(verdict, 50)
    assert price(weigh(known(activity=SPARSE), [first, answer(40, 60)]), 50) == row(50)[1]


def test_beside_a_row_without_a_time_no_silence_counts() -> None:
    page = answer(0, 100, [*without(0, 100, 50), (None, 10, 11, 9, 10, 1, None)])
    verdict = weigh(known(activity=SPARSE), [page])
    assert (verdict.empty, verdict.ask) == ((), span(50, 51))
    assert len(verdict.bars) == 99


# Further questions


def test_every_further_question_begins_at_an_earlier_bar() -> None:
    state, first = known(range(-50, 0)), answer(0, 100, without(0, 100, 50))
    questions = [question_about(state, span(50, 51), [first] * count) for count in (1, 2, 3)]
    starts = [(each.from_ms - at(0)) // MINUTE_MS for each in questions]
    assert starts == [48, 47, 46]
    assert all(each.to_ms >= at(52) for each in questions), "it ends behind the next bar"
    assert {each.about for each in questions} == {span(50, 51)}


def test_a_question_about_a_range_reaches_from_the_bar_before_it_to_the_one_behind() -> None:
    state = known([*range(10), *range(60, 70)], empty=(span(10, 20),))
    assert question_about(state, span(20, 50)).interval == span(9, 61)
    assert question_about(state, span(20, 50), turn=1).interval == span(8, 61)
    assert question_about(known(), span(20, 50)).interval == span(19, 50)


def test_a_question_does_not_begin_behind_slots_of_which_nothing_is_known() -> None:
    """Rows of those slots might fill the answer."""
    state = known([*range(10), *range(900, 910)], empty=(span(10, 200),), counts_rows=True)
    assert question_about(state, span(701, 750)).interval == span(700, 901)
    heard = Silence(at(699), at(701), 1, at(NOW), at(NOW), at(0), at(NOW))
    half_a_page = replace(state, silences=(heard,))
    assert question_about(half_a_page, span(701, 750)).interval == span(9, 901)


def test_the_question_of_a_first_answer_that_is_empty_is_repeated() -> None:
    empty = answer(0, 100, ())
    assert question_about(known(), span(0, 100), [empty]) == empty.question
    other = question_about(known(), span(0, 100), [empty, empty])
    assert other.from_ms < empty.question.from_ms


def test_a_question_for_a_window_is_no_longer_than_a_page() -> None:
    state = known([*range(10), *range(5000, 5010)], empty=(span(10, 20),))
    window = question_about(state, span(20, 4000))
    assert (window.limit, window.to_ms - window.from_ms) == (PAGE, PAGE * MINUTE_MS)
    counted = question_about(replace(state, counts_rows=True), span(20, 4000))
    assert (counted.limit, counted.interval) == (PAGE, span(9, 5001))


# Old silences: longer bars


def longer_known(*gone: int, empty: tuple[Interval, ...] = (), heard: int = 1) -> Known:
    """Ten hours of minutes, and old silences where some are gone."""
    silences = [Silence(at(a), at(b), heard, at(NOW), at(NOW), at(0), 0) for a, b in _runs(gone)]
    return known(
        without(0, 600, *gone),
        activity=SPARSE,
        longer=HOUR,
        silences=tuple(silences),
        empty=empty,
    )


def _runs(gone: Iterable[int]) -> list[tuple[int, int]]:
    ordered = sorted(gone)
    firsts = [each for each in ordered if each - 1 not in ordered]
    ends = [each + 1 for each in ordered if each + 1 not in ordered]
    return list(zip(firsts, ends, strict=True))


def hours(state: Known, **changes: Row | None) -> Answer:
    """The hourly bars of known minutes. `h4` is the close and the volume of an hour, or None."""
    bars, made = state.bars, []
    for hour in range(10):
        inside = bars.take((bars.ts >= at(hour * 60)) & (bars.ts < at(hour * 60 + 60)))
        figures = (inside.c[-1], float(inside.v.sum())) if len(inside) else None
        figures = changes.get(f"h{hour}", figures)
        if figures is not None:
            close, volume = figures
            made.append((at(hour * 60), close, close, close, close, volume, None))
    question = Question(HOUR, at(0), at(600), 10)
    end = HOUR.floor(at(NOW))
    return Answer(question, BarRows.of(made), full=False, ended_ms=end, at=at(NOW + 5))


def confirmed(state: Known, longer: Answer) -> Verdict:
    verdict = confirm(state, longer)
    assert verdict is not None, "it was dropped"
    return verdict


WHOLE_HOUR = range(240, 300)
TEN_MINUTES = range(390, 400)


def test_an_old_silence_waits_for_longer_bars() -> None:
    page = answer(0, 100, without(0, 100, *range(40, 60)), now=60 + DAY_MS // MINUTE_MS)
    verdict = weigh(known(activity=SPARSE, longer=HOUR), [page])
    assert (verdict.empty, verdict.ask) == ((), None)
    assert [(each.interval, each.due_ms) for each in verdict.silences] == [(span(40, 60), 0)]
    young = answer(0, 100, without(0, 100, *range(40, 60)), now=59 + DAY_MS // MINUTE_MS)
    assert weigh(known(activity=SPARSE, longer=HOUR), [young]).ask == span(40, 60)


def test_an_old_ordinary_silence_does_not_wait() -> None:
    page = answer(0, 100, without(0, 100, 40), now=10_000)
    assert weigh(known(activity=SPARSE, longer=HOUR), [page]).empty == (span(40, 41),)


def test_a_long_silence_of_a_busy_market_waits_for_a_second_answer_and_not_for_hours() -> None:
    long, short = (
        weigh(
            known(activity=BUSY, longer=HOUR),
            [answer(0, 100, without(0, 100, *range(40, 40 + length)), now=10_000)],
        )
        for length in (11, 10)
    )
    assert [each.due_ms for each in long.silences] == [at(10_000 + 11)]
    assert [each.due_ms for each in short.silences] == [0]


def test_one_question_for_longer_bars_has_two_of_them_on_either_side() -> None:
    state = longer_known(*WHOLE_HOUR, *TEN_MINUTES)
    question = longer_question(state)
    assert question is not None
    assert question.timeframe == HOUR
    assert question.interval == Interval(at(120), at(540))
    again = longer_question(state, turn=1)
    assert again is not None
    assert again.from_ms < question.from_ms
    assert longer_question(known(longer=HOUR)) is None


@pytest.mark.parametrize("figures", [None, (105.0, 0.0)])
def test_an_absent_hour_confirms_that_its_minutes_are_empty(figures: Any) -> None:
    state = longer_known(*WHOLE_HOUR)
    verdict = confirmed(state, hours(state, h4=figures))
    assert verdict.empty == (span(240, 300),)
    assert (verdict.silences, verdict.ask) == ((), None)
    assert sum(verdict.activity.silences) > sum(state.activity.silences)


def test_an_hour_confirms_empty_minutes_by_its_close_and_the_sum_of_volumes() -> None:
    state = longer_known(*TEN_MINUTES)
    assert confirmed(state, hours(state)).empty == (span(390, 400),)


def test_an_hour_with_more_volume_takes_back_what_was_heard() -> None:
    state = longer_known(*WHOLE_HOUR, *TEN_MINUTES)
    verdict = confirmed(state, hours(state, h4=(105.0, 7.0), h6=(row(419)[1], 999.0)))
    assert verdict.empty == ()
    asked = at(NOW + 5)
    assert [(each.interval, each.heard, each.due_ms) for each in verdict.silences] == [
        (span(240, 400), 0, asked)
    ], "silences that are alike are one, also over settled slots"


@pytest.mark.parametrize("figures", [(104.5, None), (None, 1.0)])
def test_another_close_or_less_volume_confirms_nothing(figures: tuple[Any, Any]) -> None:
    state = longer_known(*TEN_MINUTES)
    full = sum(row(slot)[5] for slot in range(360, 420) if slot not in TEN_MINUTES)
    close, volume = figures[0] or row(419)[1], figures[1] or full
    verdict = confirmed(state, hours(state, h6=(close, volume)))
    assert verdict.empty == ()
    assert [(each.heard, each.due_ms) for each in verdict.silences] == [(1, at(NOW + 5))]


def test_where_hours_often_disagree_with_their_minutes_sums_confirm_nothing() -> None:
    state = longer_known(*WHOLE_HOUR, *TEN_MINUTES)
    verdict = confirmed(state, hours(state, h1=(row(119)[1], 999.0)))
    assert verdict.empty == (span(240, 300),), "an absent hour still does"


@pytest.mark.parametrize(
    "lies", [{"h2": None}, {f"h{hour}": (50.0, 100.0) for hour in (0, 1, 2, 3, 5)}]
)
def test_an_answer_that_lacks_an_hour_or_has_other_closes_is_dropped(lies: Any) -> None:
    state = longer_known(*WHOLE_HOUR)
    false = hours(state, **lies)
    assert confirm(state, false) is None
    verdict = confirm(state, false, is_last=True)
    assert verdict is not None
    assert verdict.empty == ()
    assert [(each.heard, each.due_ms) for each in verdict.silences] == [(1, at(NOW + 5))]


def test_what_longer_bars_did_not_settle_is_asked_about_by_itself() -> None:
    tried = Silence(at(40), at(60), 1, at(NOW), at(NOW), at(0), at(NOW))
    state = known(activity=SPARSE, longer=HOUR, silences=(tried,))
    page = answer(2, 100, without(2, 100, *range(40, 60)), now=5000)
    assert weigh(state, [page]).empty == (span(40, 60),), "the second answer"
    state = replace(state, silences=(replace(tried, heard=0),))
    assert weigh(state, [page]).ask == span(40, 60)


def test_slots_that_no_answer_claimed_to_be_empty_are_not_confirmed() -> None:
    state = longer_known(*TEN_MINUTES)
    unheard = replace(state, bars=state.bars.only(state.bars.ts != at(370)))
    verdict = confirmed(unheard, hours(unheard))
    assert verdict.empty == ()


def test_other_silences_stay_as_they_are() -> None:
    due = Silence(at(500), at(510), 1, at(NOW), at(NOW), at(0), at(NOW + 60))
    far = Silence(at(5000), at(5100), 1, at(NOW), at(NOW), at(0), 0)
    state = longer_known(*WHOLE_HOUR, *range(500, 510))
    state = replace(state, silences=(state.silences[0], due, far))
    verdict = confirmed(state, hours(state))
    assert verdict.empty == (span(240, 300),)
    assert verdict.silences == (due, far)


# Bars that differ in length


MONTH = Timeframe.parse("1M")


def first_of(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1000


def monthly(from_ms: int, to_ms: int, ts: Iterable[int], **other: Any) -> Answer:
    rows = [(t, *row(t // DAY_MS)[1:]) for t in ts]
    question = Question(MONTH, from_ms, to_ms, PAGE)
    now = first_of(2025, 1)
    return Answer(question, BarRows.of(rows), ended_ms=now, at=now, **other)


def test_months_are_settled_where_months_end() -> None:
    start, end = first_of(2022, 1), first_of(2023, 1)
    every = MONTH.opens(start, end).tolist()
    lacks = [each for each in every if each != first_of(2022, 3)]
    activity = Activity().add(100, 80, [1] * 20, PAGE, 2.0)
    state = replace(Known(MONTH, PAGE), activity=activity)
    verdict = weigh(state, [monthly(start, end, lacks, full=False)])
    assert verdict.bars.ts.tolist() == lacks
    assert verdict.empty == (Interval(first_of(2022, 3), first_of(2022, 4)),)


def test_a_silence_is_counted_in_months() -> None:
    start, end = first_of(2020, 1), first_of(2024, 1)
    every = MONTH.opens(start, end).tolist()
    state = replace(Known(MONTH, PAGE), activity=BUSY)
    for length, waits in ((10, False), (11, True)):
        lacks = [*every[:20], *every[20 + length :]]
        verdict = weigh(state, [monthly(start, end, lacks, full=False)])
        gone = Interval(every[20], every[20 + length])
        assert [each.interval for each in verdict.silences] == [gone]
        assert (verdict.ask is None) == waits


MIN_FX = MINUTE.by(FX)
FRIDAY = int(datetime(2024, 1, 19, 21, tzinfo=UTC).timestamp()) * 1000
"""55 minutes before the market closes over the weekend."""
SUNDAY = FRIDAY + 2 * DAY_MS + HOUR_MS


def fx_page(ts: Iterable[int]) -> Answer:
    """An answer about the last hour of a week and the first one of the next."""
    rows = [(t, *row(t // MINUTE_MS)[1:]) for t in ts]
    question = Question(MIN_FX, FRIDAY, SUNDAY + HOUR_MS, PAGE)
    now = SUNDAY + 10 * DAY_MS
    return Answer(question, BarRows.of(rows), full=False, ended_ms=now, at=now)


FX_SLOTS: list[int] = MIN_FX.opens(FRIDAY, SUNDAY + HOUR_MS).tolist()


def test_closed_time_is_no_silence() -> None:
    state = replace(Known(MIN_FX, PAGE), activity=BUSY)
    verdict = weigh(state, [fx_page(FX_SLOTS)])
    assert verdict.bars.ts.tolist() == FX_SLOTS
    assert (verdict.empty, verdict.ask, verdict.silences) == ((), None, ())


def test_a_silence_over_a_weekend_is_counted_in_bars() -> None:
    state = replace(Known(MIN_FX, PAGE), activity=BUSY)
    for length, waits in ((10, False), (11, True)):
        verdict = weigh(state, [fx_page([*FX_SLOTS[:50], *FX_SLOTS[50 + length :]])])
        assert (verdict.ask is None) == waits
        gone = Interval(FX_SLOTS[50], FX_SLOTS[50 + length])
        assert [each.interval for each in verdict.silences] == [gone]


def test_a_bar_that_came_in_closed_time_is_kept() -> None:
    saturday = FRIDAY + DAY_MS
    times = sorted([*FX_SLOTS, saturday])
    state = replace(Known(MIN_FX, PAGE), activity=BUSY)
    assert weigh(state, [fx_page(times)]).bars.ts.tolist() == times
    both = [fx_page(times), fx_page(FX_SLOTS)]
    verdict = weigh(state, both)
    assert verdict.bars.ts.tolist() == times, "another answer says nothing by having no bar there"
    assert (verdict.empty, verdict.silences) == ((), ())


# Silences as they are stored


def test_a_silence_is_stored_as_a_list_of_numbers() -> None:
    silence = Silence(at(40), at(42), 1, at(50), at(60), at(0), at(NOW))
    assert Silence(*silence.document()) == silence
    assert silence.within(span(41, 90)) == replace(silence, from_ms=at(41))
    assert silence.within(span(42, 90)) is None


def test_a_silence_over_settled_slots_is_one_and_not_over_unheard_ones() -> None:
    state = known(activity=BUSY)
    verdict = weigh(state, [answer(0, 100, without(0, 100, 40, 42))])
    assert [each.interval for each in verdict.silences] == [span(40, 43)]
    bad = (at(41), 0, 0, 0, 0, 1, None)
    verdict = weigh(state, [answer(0, 100, [*without(0, 100, 40, 41, 42), bad])])
    assert [each.interval for each in verdict.silences] == [span(40, 41), span(42, 43)]


@pytest.mark.parametrize(("empty", "rows"), [((30, 33), (36, 100)), ((100, 103), (33, 97))])
def test_a_silence_is_as_long_as_its_parts_on_either_side_of_a_border(
    empty: tuple[int, int], rows: tuple[int, int]
) -> None:
    page = answer(33, 100, range(*rows))
    assert weigh(known(activity=SPARSE), [page]).empty != (), "three slots are ordinary"
    assert weigh(known(activity=SPARSE, empty=(span(*empty),)), [page]).empty == ()


def test_the_activity_of_a_new_market_is_that_of_its_first_page() -> None:
    half = [slot for slot in range(200) if slot % 2 or slot in (0, 198)]
    first = weigh(known(), [answer(0, 200, half)])
    assert (first.ask, first.activity) == (span(2, 197), Activity()), "it is not settled yet"
    verdict = weigh(known(), [answer(n, 200, half) for n in (0, 1)])
    assert verdict.ask is None
    assert (verdict.activity.slots, verdict.activity.bars) == (200, 102)
    assert verdict.activity.silences[0] == 98
    assert verdict.activity.move > 0


# Cases that once failed


def test_a_silence_with_anchors_in_one_answer_and_at_the_edge_of_another_is_counted() -> None:
    """Its anchor lies outside the question of the one, and before the end of the other's."""
    answers = [answer(0, 50, [*range(40), 55]), answer(30, 70, range(30, 40))]
    for both in (answers, answers[::-1]):
        verdict = weigh(known(activity=SPARSE), both)
        assert verdict.empty == ()
        assert verdict.silences[0].from_ms == at(40)


@pytest.mark.parametrize("junk", [{}, (at(3), [10], 11, 9, 10, 1, 1)])
def test_a_refused_row_may_hold_anything(junk: Any) -> None:
    verdict = weigh(known(activity=BUSY), [answer(n, 100, [*range(n, 100), junk]) for n in (0, 1)])
    assert [each.reason for each in verdict.refused] == ["unreadable"], "once, as both have it"


def test_a_verdict_that_only_asks_leaves_silences_elsewhere_to_those_who_know_them() -> None:
    inside, outside = (
        Silence(at(n), at(n + 2), 1, at(NOW), at(NOW), at(0), at(NOW)) for n in (50, 300)
    )
    state = known([20], activity=BUSY, silences=(inside, outside))
    verdict = weigh(state, [answer(0, 100, but(0, 100, row(20, price=104.5)))])
    assert verdict.ask == span(20, 21)
    assert verdict.silences == (inside,)
