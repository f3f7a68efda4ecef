"""The options of `collector connector set`, as the changes they mean."""

from __future__ import annotations

from typing import Any

import pytest

from collector.cli.connector_options import changes_of
from collector.cli.failures import UsageMistake
from collector.errors import InvalidInput
from collector.operations.connector_change import checked


@pytest.mark.parametrize(
    ("name", "typed", "meant"),
    [
        ("rate_limit_period_ms", "1s", 1_000),
        ("rate_limit_period_ms", "500ms", 500),
        ("rate_limit_period_ms", "60000", 60_000),
        ("rate_limit_period_ms", "5m", 300_000),
        ("max_concurrent_jobs", "20", 20),
        ("max_concurrent_jobs", "none", None),
        ("windows", ["none"], []),
        ("windows", ["6000/1m"], [{"unit": "requests", "limit": 6000, "period_ms": 60_000}]),
        ("windows", ["9:weight/2s"], [{"unit": "weight", "limit": 9, "period_ms": 2_000}]),
        ("circuit", ["thread_safe=true"], {"thread_safe": True}),
        ("circuit", ["circuit_min_events=5"], {"circuit_min_events": 5}),
        ("circuit", ["circuit_max_err_rate_ratio=0.5"], {"circuit_max_err_rate_ratio": 0.5}),
    ],
)
def test_what_was_typed_is_read(name: str, typed: Any, meant: Any) -> None:
    assert changes_of({name: typed, "notes": None}) == {name: meant}


@pytest.mark.parametrize(
    ("name", "typed"),
    [
        ("rate_limit_period_ms", "soon"),
        ("max_concurrent_jobs", "few"),
        ("windows", ["6000"]),
        ("windows", ["6000:bytes/1m"]),
        ("circuit", ["circuit_min_events"]),
    ],
)
def test_what_cannot_be_read_is_refused(name: str, typed: Any) -> None:
    with pytest.raises(UsageMistake):
        changes_of({name: typed})


@pytest.mark.parametrize(
    "changes",
    [
        {"rate_limit": 0},
        {"rate_limit": 2**31},
        {"rate_limit_period_ms": 0},
        {"max_concurrent_jobs": 0},
        {"reserve_threshold": 1.5},
        {"priority_reserve": -1},
        {"algorithm": "leaky"},
        {"windows": [{"unit": "weight", "limit": 0, "period_ms": 1}]},
        {"circuit": {"circuit_min_event": 5}},
        {"circuit": {"circuit_max_err_rate_ratio": 2}},
        {"circuit": {"circuit_min_events": "many"}},
        {"circuit": {"circuit_min_events": None}},
        {"circuit": {"circuit_min_events": True}},
        {"circuit": {"circuit_window_sec": 1.5}},
        {"circuit": {"thread_safe": 1}},
    ],
)
def test_values_that_cannot_be_are_refused_whoever_sends_them(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(changes)
    assert refused.value.code == "bad_limits"


def test_null_lifts_the_ceiling() -> None:
    assert checked({"max_concurrent_jobs": None}) == {"max_concurrent_jobs": None}


def test_settings_of_the_gate_go_to_their_fields() -> None:
    found = checked({"circuit": {"circuit_max_err_rate_ratio": 1, "events_maxlen": None}})
    assert found == {
        "circuit.settings.circuit_max_err_rate_ratio": 1,
        "circuit.settings.events_maxlen": None,
    }
