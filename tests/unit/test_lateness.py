"""From how late answers were to the margin that holds."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.connectors.in_flight import NEVER, InFlight
from collector.connectors.lateness import EDGES_MS, Lateness, Margin, best_margin_ms
from collector.connectors.window import Window

SECOND = Window("requests", 20, 1_000)
FIVE = Window("requests", 100, 5_000)
NOW_MS = 1_700_000_000_000


def histogram(*late_ms: float) -> tuple[int, ...]:
    counts = [0] * (len(EDGES_MS) + 1)
    for each in late_ms:
        counts[bisect_left(EDGES_MS, each)] += 1
    return tuple(counts)


def test_on_a_quiet_way_the_margin_is_next_to_nothing() -> None:
    assert best_margin_ms(histogram(*[1.0] * 95, *[3.0] * 5), 2.0, SECOND) == 10


def test_what_one_in_a_hundred_takes_longer_is_charged_and_not_waited_for() -> None:
    tail = [*range(60), *range(60), 310]
    assert best_margin_ms(histogram(*tail), 3.0, SECOND) <= 65
    assert best_margin_ms(histogram(*tail), 3.0, Window("requests", 1_000, 600_000)) > 300


def test_a_margin_that_is_too_large_for_its_period_is_not_tried_for() -> None:
    """What is later than that is charged, and a margin that does not reach it only costs."""
    assert best_margin_ms(histogram(*[400] * 100), 3.0, FIVE) == 403
    assert best_margin_ms(histogram(*[400] * 100), 3.0, SECOND) == 10


@given(
    late=st.lists(st.floats(0, 20_000), min_size=1, max_size=50),
    token_ms=st.floats(0, 500),
    period_ms=st.integers(1, 100_000),
)
def test_no_margin_is_larger_than_its_share_of_the_period(
    late: list[float], token_ms: float, period_ms: int
) -> None:
    window = Window("requests", 5, period_ms)
    assert 1 <= best_margin_ms(histogram(*late), token_ms, window) <= window.largest_margin_ms


def lateness(*late_ms: float, margins: tuple[Margin, ...] = (), chosen_at: int = 0) -> Lateness:
    return Lateness(20.0, 2.0, histogram(*late_ms), chosen_at, margins)


def test_the_fixed_margin_holds_until_enough_answers_are_known() -> None:
    assert lateness(*[1.0] * 49).chosen([SECOND], NOW_MS) == ()
    assert lateness(*[1.0] * 50).chosen([SECOND], NOW_MS) == (
        Margin(10, 125, NOW_MS + 1_000 + 125),
    )
    assert Lateness().margin(0, SECOND) == Margin(125, 125)


def test_a_margin_is_chosen_again_at_most_every_ten_seconds_and_only_when_it_matters() -> None:
    twenty = (Margin(20, 20),)
    known = lateness(*[9.0] * 100, margins=twenty, chosen_at=NOW_MS)
    assert known.chosen([SECOND], NOW_MS + 9_999) == twenty
    assert known.chosen([SECOND], NOW_MS + 10_000) == (Margin(12, 20, NOW_MS + 10_000 + 1_020),)
    nearly = lateness(*[14.0] * 100, margins=twenty, chosen_at=NOW_MS)
    assert nearly.chosen([SECOND], NOW_MS + 10_000) == twenty


def test_a_larger_margin_holds_at_once_and_a_smaller_one_for_grants_later() -> None:
    margin = Margin(20, 20)
    assert margin.towards(60, SECOND, NOW_MS) == Margin(60, 60)
    smaller = margin.towards(12, SECOND, NOW_MS)
    assert smaller == Margin(12, 20, NOW_MS + 1_020)
    assert smaller.settled(NOW_MS + 1_019) == smaller
    assert smaller.settled(NOW_MS + 1_020).granted_ms == 12


def flying(window: Window, margin: Margin) -> InFlight:
    account = InFlight()
    account.know([window], Lateness(20.0, 2.0, margins=(margin,)))
    return account


@pytest.mark.parametrize(("took_ms", "charged"), [(20, 0), (48, 0), (49, 1), (400, 1)])
def test_an_answer_later_than_the_margin_is_charged_once_more(took_ms: int, charged: int) -> None:
    account = flying(SECOND, Margin(30, 30))
    account.leaves(1, 0.0, 1, [NEVER])
    account.came_back(1, took_ms / 1000)
    assert account.take_charges() == ([charged], charged)
    assert account.take_charges() == ([0], 0)


def test_every_window_judges_by_its_own_margin_and_charges_its_own_cost() -> None:
    account = InFlight()
    windows = [SECOND, Window("weight", 100, 60_000)]
    account.know(windows, Lateness(20.0, 0.0, margins=(Margin(30, 30), Margin(500, 500))))
    for number, took in ((1, 0.2), (2, 0.9)):
        account.leaves(number, 0.0, 7, [NEVER, NEVER])
        account.came_back(number, took)
    assert account.take_charges() == ([2, 7], 2)


def test_what_hangs_is_charged_every_half_period() -> None:
    account = flying(SECOND, Margin(30, 30))
    account.leaves(1, 0.0, 1, [NEVER])
    charged = []
    for tenth in range(31):
        account.charge_the_hanging(tenth / 10)
        charged.append(account.take_charges()[1])
    assert [at for at, count in enumerate(charged) if count] == [5, 10, 15, 20, 25, 30]


def test_a_far_exchange_is_not_charged_for_being_far() -> None:
    account = InFlight()
    account.know([SECOND], Lateness(700.0, 2.0, margins=(Margin(30, 30),)))
    account.leaves(1, 0.0, 1, [NEVER])
    account.charge_the_hanging(0.72)
    account.came_back(1, 0.72)
    assert account.take_charges() == ([0], 0)


def test_a_request_that_nobody_waited_for_is_charged() -> None:
    account = flying(SECOND, Margin(30, 30))
    account.leaves(1, 0.0, 1, [NEVER])
    account.came_back(1, None)
    assert account.take_charges() == ([1], 1)


def test_one_answered_after_a_fixed_window_ended_is_charged_to_the_next() -> None:
    account = flying(SECOND, Margin(30, 30))
    for number, answered in ((1, 0.4), (2, 0.6)):
        account.leaves(number, 0.0, 1, [0.5])
        account.charge_the_hanging(answered)
        account.came_back(number, answered)
    assert account.take_charges() == ([1], 1)


def test_a_token_that_was_thrown_away_is_charged_nothing_more() -> None:
    account = flying(SECOND, Margin(30, 30))
    account.leaves(1, 0.0, 1, [NEVER])
    account.never_left(1)
    account.charge_the_hanging(9.0)
    assert account.take_charges() == ([0], 0)


def test_a_refused_connection_teaches_nothing_about_latency() -> None:
    account = InFlight()
    account.know([SECOND], Lateness(300.0, 2.0, margins=(Margin(30, 30),)))
    account.leaves(1, 0.0, 1, [NEVER])
    account.came_back(1, 0.003, learn=False)
    account.leaves(2, 1.0, 1, [NEVER])
    account.came_back(2, 1.305)
    assert account.charges == [0]
    assert account.least_ms == 300.0
