"""The circuit gate: when it trips, how long it holds, what opens it, and its lock."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from collector.clock import ManualClock
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.circuit.state import CircuitState
from tests.support.circuit_gate import gate_of, record

OPEN, TRIPPED, HALF_OPEN = CircuitState


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


def test_the_official_codes() -> None:
    assert {state.name: state.value for state in CircuitState} == {
        "OPEN": 0,
        "TRIPPED": 1,
        "HALF_OPEN": 2,
    }


def test_the_defaults_are_the_decided_ones() -> None:
    settings = CircuitSettings()
    assert settings.circuit_window_sec == 300
    assert settings.circuit_max_err_rate_ratio == 0.5
    assert settings.circuit_min_closed_sec == 60
    assert settings.circuit_half_open_probe == 3
    assert settings.circuit_min_events == 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"circuit_max_err_rate_ratio": 0},
        {"circuit_max_err_rate_ratio": 1.01},
        {"circuit_window_sec": 0},
        {"circuit_half_open_probe": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        CircuitSettings(**wrong)


def test_from_open_over_tripped_and_half_open_to_open(clock: ManualClock) -> None:
    gate = gate_of(clock)
    assert gate.state is OPEN
    record(gate, err=20)
    assert gate.state is TRIPPED
    clock.advance(60)
    assert gate.allow()
    assert gate.state is HALF_OPEN
    record(gate, ok=3)
    assert gate.state is OPEN


def test_it_trips_at_the_ratio_and_not_below(clock: ManualClock) -> None:
    below, at = gate_of(clock), gate_of(clock)
    record(below, ok=51, err=49)
    record(at, ok=50, err=50)
    assert (below.state, at.state) == (OPEN, TRIPPED)


def test_it_needs_enough_events_to_trip(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=19)
    assert gate.state is OPEN
    record(gate, err=1)
    assert gate.state is TRIPPED


def test_the_window_slides_by_time(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=19)
    clock.advance(299)
    assert gate.snapshot()["window_len"] == 19
    clock.advance(1)
    assert gate.snapshot()["window_len"] == 0
    record(gate, err=19)
    assert gate.state is OPEN


def test_it_holds_for_the_time_it_was_told(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=20)
    clock.advance(59.999)
    assert not gate.allow()
    assert gate.state is TRIPPED
    clock.advance(0.001)
    assert gate.allow()


def test_so_many_successes_as_configured_open_it(clock: ManualClock) -> None:
    gate = gate_of(clock, CircuitSettings(circuit_half_open_probe=2))
    record(gate, err=20)
    clock.advance(60)
    record(gate, ok=1)
    assert gate.state is HALF_OPEN
    record(gate, ok=1)
    assert gate.state is OPEN


def test_a_failed_probe_trips_it_again_for_the_whole_time(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=20)
    clock.advance(60)
    record(gate, ok=2, err=1)
    assert gate.state is TRIPPED
    clock.advance(59)
    assert not gate.allow()
    clock.advance(1)
    record(gate, ok=2)
    assert gate.state is HALF_OPEN, "successes of an earlier probing do not count"


def test_opening_forgets_the_errors_that_tripped_it(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=200)
    clock.advance(60)
    record(gate, ok=3)
    assert gate.snapshot()["err_rate"] == 0.0
    record(gate, ok=1, err=1)
    assert gate.state is OPEN


def test_a_clock_that_steps_back_shortens_nothing(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=20)
    clock.set_wall(1_600_000_000_000)
    assert not gate.allow()
    record(gate, err=1)
    assert gate.snapshot()["window_len"] == 21
    clock.set_wall(1_700_000_060_000)
    assert gate.allow()


def test_the_snapshot_of_a_new_gate(clock: ManualClock) -> None:
    assert gate_of(clock).snapshot() == {
        "state": "OPEN",
        "err_rate": 0.0,
        "window_len": 0,
        "last_transition_ts": 0,
    }


def test_a_snapshot_tells_and_changes_nothing(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, ok=5, err=15)
    clock.advance(60)
    for _ in range(2):
        assert gate.snapshot() == {
            "state": "TRIPPED",
            "err_rate": 0.75,
            "window_len": 20,
            "last_transition_ts": 1_700_000_000,
        }


@pytest.mark.parametrize("thread_safe", [True, False])
@pytest.mark.parametrize("method", ["record", "allow", "snapshot", "state"])
def test_thread_safe_puts_a_lock_around_every_public_method(
    clock: ManualClock, thread_safe: bool, method: str
) -> None:
    gate = gate_of(clock, thread_safe=thread_safe)
    done = threading.Event()

    def call() -> None:
        _ = gate.state if method == "state" else None
        if method != "state":
            getattr(gate, method)(*([True] if method == "record" else []))
        done.set()

    thread = threading.Thread(target=call)
    with gate._lock:
        thread.start()
        waited = not done.wait(0.2 if thread_safe else 10)
    thread.join(10)
    assert waited is thread_safe
    assert done.is_set()


def test_many_threads_lose_no_outcome(clock: ManualClock) -> None:
    gate = gate_of(clock, CircuitSettings(circuit_min_events=1_000_000), thread_safe=True)
    work = {"ok": 500, "err": 500}
    threads = [threading.Thread(target=record, args=(gate,), kwargs=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    snapshot = gate.snapshot()
    assert (snapshot["window_len"], snapshot["err_rate"]) == (4000, 0.5)
