"""What a circuit gate logs and measures, and how little of it when outcomes come in a flood."""

from __future__ import annotations

import io
import json
import logging
import sys
from typing import TYPE_CHECKING

import pytest
from prometheus_client import REGISTRY

from collector import logs
from collector.clock import ManualClock
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.circuit.state import CircuitState
from collector.connectors.circuit.window import MOST_ENTRIES, EventWindow
from tests.support.circuit_gate import gate_of, record

if TYPE_CHECKING:
    from collections.abc import Callable

EAGER = CircuitSettings(circuit_min_events=1, circuit_half_open_probe=1, circuit_min_closed_sec=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="collector.circuit")
    return lambda: [each.getMessage() for each in caplog.records if each.name.endswith(".circuit")]


def value(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


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
    assert gate.state is CircuitState.TRIPPED
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
