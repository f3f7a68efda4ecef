"""Seed 002 point by point: the circuit gate of one process, with its time in the test's hands."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import REGISTRY

from collector import logs
from collector.clock import ManualClock
from collector.connectors.circuit import CircuitGate, CircuitSettings
from collector.connectors.circuit_state import CircuitState
from collector.connectors.circuit_window import MOST_ENTRIES, EventWindow

if TYPE_CHECKING:
    from collections.abc import Callable

OPEN, TRIPPED, HALF_OPEN = CircuitState
EAGER = CircuitSettings(circuit_min_events=1, circuit_half_open_probe=1, circuit_min_closed_sec=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="collector.circuit")
    return lambda: [each.getMessage() for each in caplog.records if each.name.endswith(".circuit")]


def gate_of(
    clock: ManualClock, settings: CircuitSettings | None = None, **options: Any
) -> CircuitGate:
    name = options.pop("exchange", "venue")
    return CircuitGate(name, settings or CircuitSettings(), now_ms=clock.wall_ms, **options)


def record(gate: CircuitGate, *, ok: int = 0, err: int = 0) -> None:
    for _ in range(ok):
        gate.record(True)
    for _ in range(err):
        gate.record(False)


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


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


def test_the_log_line_to_the_letter(clock: ManualClock, lines: Callable[[], list[str]]) -> None:
    gate = gate_of(clock, CircuitSettings(circuit_max_err_rate_ratio=0.35))
    record(gate, ok=13, err=7)
    assert lines() == [
        "event=circuit_transition state_from=OPEN state_to=TRIPPED "
        "err_rate=0.350000 window_sec=300 now=1700000000"
    ]


def test_every_transition_is_one_ascii_line(
    clock: ManualClock, lines: Callable[[], list[str]]
) -> None:
    gate = gate_of(clock)
    record(gate, err=20)
    clock.advance(60)
    record(gate, err=1)
    clock.advance(60)
    record(gate, ok=3)
    moves = [tuple(part.split("=")[1] for part in line.split()[1:3]) for line in lines()]
    assert moves == [
        ("OPEN", "TRIPPED"),
        ("TRIPPED", "HALF_OPEN"),
        ("HALF_OPEN", "TRIPPED"),
        ("TRIPPED", "HALF_OPEN"),
        ("HALF_OPEN", "OPEN"),
    ]
    for line in lines():
        keys = [part.split("=")[0] for part in line.split(" ")]
        assert keys == ["event", "state_from", "state_to", "err_rate", "window_sec", "now"]
        assert line.isascii()
        assert "\n" not in line


def test_json_logs_carry_the_line_as_event_and_the_exchange_beside_it(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    logs.configure("WARNING", "json")
    try:
        record(gate_of(clock, exchange="binance"), err=20)
    finally:
        monkeypatch.undo()
        logs.configure("CRITICAL", "json")
    (entry,) = (json.loads(line) for line in written.getvalue().splitlines())
    assert entry["event"].startswith("event=circuit_transition state_from=OPEN state_to=TRIPPED ")
    assert (entry["logger"], entry["exchange"]) == ("collector.circuit", "binance")


def test_the_three_metrics(clock: ManualClock) -> None:
    gate = gate_of(clock, exchange="measured")
    record(gate, ok=12, err=4)
    assert value("circuit_state", exchange="measured") == 0
    assert value("circuit_err_rate_window", exchange="measured") == 0.25
    record(gate, err=8)
    assert value("circuit_state", exchange="measured") == 1
    assert value("circuit_err_rate_window", exchange="measured") == 0.5
    labels = {"exchange": "measured", "from": "OPEN", "to": "TRIPPED"}
    assert value("circuit_transitions_total", **labels) == 1


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


def test_tripping_again_is_no_transition(
    clock: ManualClock, lines: Callable[[], list[str]]
) -> None:
    gate = gate_of(clock, exchange="twice")
    record(gate, err=20)
    clock.advance(30)
    record(gate, err=20)
    labels = {"exchange": "twice", "from": "OPEN", "to": "TRIPPED"}
    assert (len(lines()), value("circuit_transitions_total", **labels)) == (1, 1)
    clock.advance(30)
    assert gate.allow(), "errors meanwhile do not prolong the hold"


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


def test_the_window_holds_as_many_entries_as_it_was_told(clock: ManualClock) -> None:
    gate = gate_of(clock, anti_flood_enabled=False, events_maxlen=5)
    record(gate, err=4, ok=3)
    snapshot = gate.snapshot()
    assert snapshot["window_len"] == 5, "the oldest gave way"
    record(gate, ok=5)
    assert gate.snapshot()["err_rate"] == 0.0


@pytest.mark.parametrize(("hint", "room"), [(0, 10), (1, 10), (3, 30)])
def test_else_its_length_times_the_hint(clock: ManualClock, hint: int, room: int) -> None:
    settings = CircuitSettings(circuit_window_sec=10)
    gate = gate_of(clock, settings, anti_flood_enabled=False, events_per_sec_hint=hint)
    record(gate, ok=100)
    assert gate.snapshot()["window_len"] == room


@pytest.mark.parametrize("options", [{"events_maxlen": 50_000}, {"events_per_sec_hint": 1_000}])
def test_and_never_more_than_ten_thousand(clock: ManualClock, options: dict[str, int]) -> None:
    gate = gate_of(clock, anti_flood_enabled=False, **options)
    record(gate, ok=MOST_ENTRIES + 50)
    assert gate.snapshot()["window_len"] == MOST_ENTRIES == 10_000


def test_outcomes_of_one_second_share_a_bin() -> None:
    window = EventWindow(300, maxlen=300)
    for number in range(100):
        window.add(7, number % 4 > 0)
    window.add(8, True)
    assert (window.entries, window.ok_count, window.err_count) == (2, 76, 25)


def test_the_rate_is_of_sums_and_leaves_nothing_out(clock: ManualClock) -> None:
    gate = gate_of(clock, CircuitSettings(circuit_max_err_rate_ratio=1.0), max_events_per_sec=1)
    record(gate, ok=900)
    clock.advance(1)
    record(gate, err=100)
    assert gate.snapshot()["err_rate"] == 0.1
    assert gate.snapshot()["window_len"] == 1000


def test_log_lines_have_a_budget_a_second_and_transitions_have_none(
    clock: ManualClock, lines: Callable[[], list[str]]
) -> None:
    gate = gate_of(clock, EAGER, exchange="flapping", max_log_lines_per_sec=1)
    record(gate, err=1)
    clock.advance(1)
    record(gate, err=1)  # HALF_OPEN and TRIPPED again, in one second
    assert [line.split()[2] for line in lines()] == ["state_to=TRIPPED", "state_to=HALF_OPEN"]
    labels = {"exchange": "flapping", "from": "HALF_OPEN", "to": "TRIPPED"}
    assert value("circuit_transitions_total", **labels) == 1
    assert gate.state is TRIPPED
    clock.advance(1)
    assert gate.allow()
    assert len(lines()) == 3, "the next second has a budget of its own"


def test_the_gauge_is_refreshed_so_often_a_second_and_no_more(clock: ManualClock) -> None:
    gate = gate_of(clock, exchange="gauged", max_events_per_sec=2)
    record(gate, ok=2, err=2)
    assert value("circuit_err_rate_window", exchange="gauged") == 0.0
    assert gate.snapshot()["err_rate"] == 0.5, "counted all the same"
    clock.advance(1)
    record(gate, ok=4)
    assert value("circuit_err_rate_window", exchange="gauged") == pytest.approx(2 / 6)


def test_without_anti_flood_there_are_no_bins_and_no_budgets(
    clock: ManualClock, lines: Callable[[], list[str]]
) -> None:
    gate = gate_of(clock, EAGER, anti_flood_enabled=False, max_log_lines_per_sec=1)
    record(gate, err=1)
    clock.advance(1)
    record(gate, err=1)
    assert len(lines()) == 3


def test_a_clock_that_steps_back_shortens_nothing(clock: ManualClock) -> None:
    gate = gate_of(clock)
    record(gate, err=20)
    clock.set_wall(1_600_000_000_000)
    assert not gate.allow()
    record(gate, err=1)
    assert gate.snapshot()["window_len"] == 21
    clock.set_wall(1_700_000_060_000)
    assert gate.allow()
