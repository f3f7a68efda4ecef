"""The database's clock as one process knows it."""

from __future__ import annotations

import time

import pytest

from collector.clock import FarClock, ManualClock, SystemClock
from collector.mongo.server_clock import ServerClock
from workers.exchange_clock import ExchangeClock

T0 = 1_700_000_000_000.0


def answered(server: ServerClock, clock: ManualClock, server_ms: float, took: float = 0.01) -> None:
    """An answer that carries the server's time, made in the middle of its way."""
    sent = clock.monotonic()
    clock.advance(took)
    server.anchor_ms(server_ms + took * 500, sent)


def test_elapsed_time_goes_on_while_the_machine_sleeps() -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("this system has no clock that counts sleep")
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= SystemClock().monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_it_is_carried_forward_between_answers() -> None:
    clock = ManualClock()
    server = ServerClock(clock)
    answered(server, clock, T0)
    clock.advance(5)
    assert server.now_ms() == pytest.approx(T0 + 5_010, abs=6)
    assert not server.is_stale(10)
    clock.advance(6)
    assert server.is_stale(10)


def test_a_slow_answer_spoils_nothing() -> None:
    clock = ManualClock()
    server = ServerClock(clock)
    answered(server, clock, T0)
    sent = clock.monotonic()
    clock.advance(8)  # the answer was made at once and came back late
    server.anchor_ms(T0 + 10, sent)
    assert server.now_ms() == pytest.approx(T0 + 8_010, abs=6)


@pytest.mark.parametrize("step_ms", [600_000, -600_000])
def test_a_clock_that_was_set_is_followed_with_the_first_answer(step_ms: int) -> None:
    clock = ManualClock()
    server = ServerClock(clock)
    answered(server, clock, T0)
    server.now_ms()
    answered(server, clock, T0 + 10 + step_ms)
    assert server.now_ms() == pytest.approx(T0 + 20 + step_ms, abs=20)


def test_a_small_correction_never_runs_it_backwards() -> None:
    clock = ManualClock()
    server = ServerClock(clock)
    answered(server, clock, T0)
    before = server.now_ms()
    answered(server, clock, T0 - 200, took=0.001)
    assert server.now_ms() == before


def test_a_time_told_to_the_second_narrows_with_every_answer() -> None:
    clock = ManualClock()
    far = FarClock(clock)
    true_offset = T0 - clock.monotonic() * 1000
    for _ in range(200):
        sent = clock.monotonic()
        clock.advance(0.037)
        now = true_offset + clock.monotonic() * 1000
        far.observe(now - now % 1000, sent, rounded_ms=999)
    assert far.now_ms() == pytest.approx(true_offset + clock.monotonic() * 1000, abs=40)


@pytest.mark.parametrize("step_ms", [600_000, -600_000])
def test_the_exchanges_date_does_not_follow_a_wrong_clock_of_mongodb(step_ms: int) -> None:
    clock = ManualClock()
    server = ServerClock(clock)
    answered(server, clock, T0)
    exchange = ExchangeClock(server, clock)
    exchange.observe(round(T0), clock.monotonic())
    before = exchange.now_ms()
    answered(server, clock, T0 + step_ms, took=0.001)
    assert exchange.now_ms() - before <= 2
    # What the exchange dates is filed by MongoDB's clock, wrong as it is.
    told = exchange.on_servers_clock(round(T0))
    assert told == pytest.approx(T0 + step_ms, abs=1_000)
