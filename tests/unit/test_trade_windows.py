"""Windows of trades that come newest first: what to request next, what an answer covers."""

from __future__ import annotations

import pytest

from collector.errors import ExchangeUnavailable
from collector.exchanges.ccxt.trade_questions import FIRST_MS, MOST_PAGES, TradeWindow, TradeWindows
from collector.exchanges.port import TradePage
from collector.market.trade import Trade

NOW = 1_735_732_800_000
SINCE = NOW - 100 * 3_600_000
PAGE = 300
SECOND = 1_000


def trades(from_ms: int, count: int, apart_ms: int = 1, first_id: int = 0) -> list[Trade]:
    return [Trade(str(first_id + n), from_ms + n * apart_ms, 1.0, 1.0) for n in range(count)]


def read(windows: TradeWindows, window: TradeWindow, told: list[Trade]) -> TradePage:
    return windows.read(window, told, count=len(told), since_ms=window.from_ms, final_ms=NOW)


def narrowed() -> TradeWindows:
    """Windows that have become a second long."""
    windows = TradeWindows(PAGE)
    window = windows.next(SINCE, NOW)
    while not window.is_shortest:
        read(windows, window, trades(SINCE, PAGE))
        window = windows.next(SINCE, NOW)
    return windows


def test_a_full_answer_settles_nothing_and_makes_the_next_window_shorter() -> None:
    windows = TradeWindows(PAGE)
    window = windows.next(SINCE, NOW)
    assert window == TradeWindow(SINCE, SINCE + FIRST_MS)
    page = read(windows, window, trades(SINCE + FIRST_MS - 30_000, PAGE + 1, apart_ms=100))
    assert page == TradePage((), SINCE, SINCE, is_latest=False)
    # A page of them is 30 seconds long, and two pages are wanted.
    assert windows.next(SINCE, NOW) == TradeWindow(SINCE, SINCE + 60_000)


def test_an_answer_with_room_left_settles_its_window_and_makes_the_next_one_longer() -> None:
    windows = TradeWindows(PAGE)
    window = windows.next(SINCE, NOW)
    page = read(windows, window, trades(SINCE, PAGE // 2, apart_ms=1000))
    assert (page.from_ms, page.to_ms, page.is_latest) == (SINCE, SINCE + FIRST_MS, False)
    assert len(page.trades) == PAGE // 2
    assert windows.next(page.to_ms, NOW) == TradeWindow(page.to_ms, page.to_ms + 4 * FIRST_MS)


def test_a_window_that_few_pages_would_bring_is_told_when_the_last_one_is_there() -> None:
    windows = TradeWindows(PAGE)
    window = windows.next(SINCE, NOW)
    newest = trades(SINCE + FIRST_MS // 2, PAGE, apart_ms=5_000, first_id=PAGE)
    oldest = trades(SINCE, 7)
    assert read(windows, window, newest) == TradePage((), SINCE, SINCE, is_latest=False)
    following = windows.next(SINCE, NOW)
    assert following == TradeWindow(SINCE, SINCE + FIRST_MS, page=2)
    page = read(windows, following, oldest)
    assert page.trades == (*oldest, *newest)
    assert (page.from_ms, page.to_ms) == (SINCE, SINCE + FIRST_MS)


def test_a_window_of_more_pages_than_it_seemed_is_given_up_for_a_shorter_one() -> None:
    windows = TradeWindows(PAGE)
    for number in range(MOST_PAGES):
        window = windows.next(SINCE, NOW)
        assert window == TradeWindow(SINCE, SINCE + FIRST_MS, page=number + 1)
        begin = SINCE + FIRST_MS // 2 - number * PAGE
        apart = 5_000 if number == 0 else 1
        told = trades(begin, PAGE, apart_ms=apart, first_id=number * PAGE)
        assert not read(windows, window, told).trades
    shorter = windows.next(SINCE, NOW)
    assert shorter.page == 1
    assert shorter.to_ms is not None
    assert shorter.to_ms <= SINCE + FIRST_MS // 2


def test_pages_that_overlap_give_their_window_up_for_a_shorter_one() -> None:
    windows = TradeWindows(PAGE)
    told = trades(SINCE + FIRST_MS // 2, PAGE, apart_ms=5_000)
    for _ in range(2):
        assert not read(windows, windows.next(SINCE, NOW), told).trades
    shorter = windows.next(SINCE, NOW)
    assert (shorter.page, shorter.is_shortest) == (1, False)
    assert shorter.to_ms is not None
    assert shorter.to_ms <= SINCE + FIRST_MS // 2


def test_a_page_whose_beginning_was_forgotten_settles_nothing() -> None:
    windows = TradeWindows(PAGE)
    window = TradeWindow(SINCE, SINCE + FIRST_MS, page=2)
    assert read(windows, window, trades(SINCE, 7)) == TradePage((), SINCE, SINCE, is_latest=False)


def test_emptiness_is_crossed_in_a_few_windows() -> None:
    windows, since, requests = TradeWindows(PAGE), NOW - 30 * 24 * FIRST_MS, 0
    is_latest = False
    while not is_latest:
        page = read(windows, windows.next(since, NOW), [])
        since, is_latest, requests = page.to_ms, page.is_latest, requests + 1
    assert since == NOW
    assert requests <= 5


def test_windows_grow_up_to_where_there_are_too_many_and_no_further() -> None:
    windows, since, requests = TradeWindows(PAGE), SINCE, 0
    many_ms = SINCE + 40 * FIRST_MS
    while since < many_ms - SECOND:
        window = windows.next(since, NOW)
        assert window.to_ms is not None
        told = trades(many_ms, PAGE) if window.to_ms >= many_ms else []
        since, requests = read(windows, window, told).to_ms, requests + 1
    assert since == many_ms - SECOND
    assert requests <= 12


def test_a_window_that_reaches_past_what_is_settled_has_no_end_and_is_the_latest() -> None:
    windows = TradeWindows(PAGE)
    since = NOW - FIRST_MS + SECOND
    window = windows.next(since, NOW)
    assert window == TradeWindow(since, None)
    page = read(windows, window, trades(since, 2))
    assert (page.to_ms, page.is_latest) == (NOW, True)


def test_a_full_answer_of_the_present_is_asked_for_again_with_an_end() -> None:
    windows = TradeWindows(PAGE)
    since = NOW - 10 * SECOND
    page = read(windows, windows.next(since, NOW), trades(since, PAGE, apart_ms=30))
    assert page == TradePage((), since, since, is_latest=False)
    window = windows.next(since, NOW)
    assert window.to_ms is not None
    assert window.to_ms <= NOW


def test_where_nothing_can_be_settled_yet_a_full_answer_is_the_latest() -> None:
    windows = TradeWindows(PAGE)
    page = read(windows, windows.next(NOW + 500, NOW), trades(NOW, PAGE))
    assert page.is_latest
    assert page.to_ms == page.from_ms


def test_a_second_that_does_not_fit_is_told_when_its_last_page_is_there() -> None:
    windows = narrowed()
    newest = trades(SINCE + 600, PAGE, first_id=2 * PAGE)
    middle = trades(SINCE + 300, PAGE, first_id=PAGE)
    oldest = trades(SINCE, 7)
    for number, told in enumerate([newest, middle], start=1):
        window = windows.next(SINCE, NOW)
        assert window == TradeWindow(SINCE, SINCE + SECOND, page=number)
        assert read(windows, window, told).to_ms == SINCE
    page = read(windows, windows.next(SINCE, NOW), oldest)
    assert page.trades == (*oldest, *middle, *newest)
    assert (page.from_ms, page.to_ms) == (SINCE, SINCE + SECOND)
    assert windows.next(page.to_ms, NOW).page == 1


def test_pages_of_a_second_that_overlap_are_not_believed_and_begin_again() -> None:
    windows = narrowed()
    read(windows, windows.next(SINCE, NOW), trades(SINCE + 10, PAGE))
    with pytest.raises(ExchangeUnavailable, match="overlap"):
        read(windows, windows.next(SINCE, NOW), trades(SINCE, 5))
    assert windows.next(SINCE, NOW) == TradeWindow(SINCE, SINCE + SECOND, page=1)


def test_a_page_that_two_have_asked_for_counts_once() -> None:
    windows = narrowed()
    mine, theirs = windows.next(SINCE, NOW), windows.next(SINCE, NOW)
    told = trades(SINCE + 300, PAGE, first_id=PAGE)
    for window in (mine, theirs):
        assert read(windows, window, told).to_ms == SINCE
    assert len(read(windows, windows.next(SINCE, NOW), trades(SINCE, 5)).trades) == PAGE + 5


def test_a_walk_through_quiet_times_leaves_the_windows_of_a_busy_one_alone() -> None:
    windows, quiet, busy = TradeWindows(PAGE), SINCE, NOW - 2 * FIRST_MS
    for _ in range(60):
        quiet = read(windows, windows.next(quiet, NOW), []).to_ms if quiet < busy else SINCE
        window = windows.next(busy, NOW)
        newest_ms = (window.to_ms or NOW) - (window.page - 1) * PAGE * 10
        begin_ms = max(window.from_ms, newest_ms - PAGE * 10)
        told = trades(begin_ms, (newest_ms - begin_ms) // 10, 10, first_id=begin_ms)
        busy = read(windows, window, told).to_ms
    assert busy > NOW - 2 * FIRST_MS + 60_000


def test_a_busy_market_costs_little_more_than_its_trades_need() -> None:
    """Trades that come in gusts: a minute of many, then minutes of few."""
    windows, since, requests = TradeWindows(PAGE), SINCE, 0
    tape = [
        SINCE + minute * 60_000 + n * 60_000 // count
        for minute in range(24 * 60)
        for count in [600 if minute % 17 == 0 else 40]
        for n in range(count)
    ]
    while since < SINCE + 24 * 3_600_000:
        window = windows.next(since, NOW)
        assert window.to_ms is not None
        newest_first = [ts for ts in reversed(tape) if window.from_ms <= ts < window.to_ms]
        told = newest_first[(window.page - 1) * PAGE : window.page * PAGE]
        told_trades = [Trade(str(ts), ts, 1.0, 1.0) for ts in reversed(told)]
        since, requests = read(windows, window, told_trades).to_ms, requests + 1
    assert requests < 1.6 * len(tape) / PAGE
