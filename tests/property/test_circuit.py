"""Any order of outcomes, questions and hours: the gate keeps its rules, and MongoDB's is the same.

Two machines. The first drives the gate of one process and looks at the transitions it tells of.
The second drives the gate in a connector's document, statement by statement, beside the first
kind, and compares them after every step; the document's clock is moved by `limiter.clock`, which
is never ahead of the server's in real life and may be here.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pymongo import ReturnDocument

from collector.clock import ManualClock
from collector.connectors.circuit.fold import Outcomes, fold_pipeline
from collector.connectors.circuit.gate import CircuitGate, CircuitSettings
from collector.connectors.circuit.state import CircuitState
from collector.connectors.connector import Connector, Limits
from collector.connectors.grant import Ask, answer_projection, grant_filter, grant_pipeline
from collector.connectors.grant_window import Want
from collector.connectors.registry import ConnectorRegistry
from collector.mongo.client import Database
from migrations import runner as migrations
from tests.support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from collector.connectors.circuit.state import CircuitTransition

OPEN, TRIPPED, HALF_OPEN = CircuitState
ALLOWED = {
    (OPEN, TRIPPED),
    (TRIPPED, HALF_OPEN),
    (HALF_OPEN, OPEN),
    (HALF_OPEN, TRIPPED),
}
circuit_settings = st.builds(
    CircuitSettings,
    circuit_window_sec=st.sampled_from([1, 5, 45, 300]),
    circuit_max_err_rate_ratio=st.sampled_from([0.2, 0.5, 1.0]),
    circuit_min_closed_sec=st.integers(1, 20),
    circuit_half_open_probe=st.integers(1, 3),
    circuit_min_events=st.integers(1, 6),
    circuit_probe_lease_sec=st.just(10),
)


class Heard:
    """Telemetry that remembers."""

    def __init__(self) -> None:
        self.transitions: list[CircuitTransition] = []

    def changed(self, transition: CircuitTransition) -> None:
        self.transitions.append(transition)

    def observed(self, state: CircuitState, err_rate: float, now_sec: int) -> None:
        assert 0 <= err_rate <= 1


class OneGate(RuleBasedStateMachine):
    """The gate of one process."""

    @initialize(chosen=circuit_settings, maxlen=st.none() | st.integers(1, 30), bins=st.booleans())
    def begin(self, chosen: CircuitSettings, maxlen: int | None, bins: bool) -> None:
        self.clock, self.heard, self.chosen = ManualClock(), Heard(), chosen
        self.latest_ms = 0
        self.tripped_at_ms = 0
        self.gate = CircuitGate(
            "x",
            replace(chosen, events_maxlen=maxlen, anti_flood_enabled=bins),
            now_ms=self._now_ms,
            telemetry=self.heard,
        )

    def _now_ms(self) -> int:
        now_ms = self.clock.wall_ms()
        self.latest_ms = max(self.latest_ms, now_ms)
        return now_ms

    @rule(seconds=st.sampled_from([0.001, 0.4, 1, 3, 20, 400]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @rule(hours=st.integers(1, 3))
    def the_clock_steps_back(self, hours: int) -> None:
        self.clock.set_wall(self.clock.wall_ms() - hours * 3_600_000)

    @rule(ok=st.booleans(), count=st.integers(1, 6))
    def outcomes(self, ok: bool, count: int) -> None:
        for _ in range(count):
            before = self.gate.state
            self.gate.record(ok)
            self._look(before)
            if not ok:
                assert self.gate.state is not HALF_OPEN, "an error never leaves it half open"

    @rule()
    def somebody_asks(self) -> None:
        before = self.gate.state
        allowed = self.gate.allow()
        self._look(before)
        assert allowed == (self.gate.state is not TRIPPED)

    def _look(self, before: CircuitState) -> None:
        if self.gate.state is TRIPPED and (before is not TRIPPED or self._moved_twice()):
            self.tripped_at_ms = self.latest_ms
        elif before is TRIPPED and self.gate.state is not TRIPPED:
            held = self.latest_ms - self.tripped_at_ms
            assert held >= self.chosen.circuit_min_closed_sec * 1000
        self.heard.transitions, told = [], self.heard.transitions
        for transition in told:
            assert transition.state_from is before
            assert (before, transition.state_to) in ALLOWED
            before = transition.state_to
        assert before is self.gate.state, "every change is told, once"

    def _moved_twice(self) -> bool:
        return len(self.heard.transitions) == 2

    @invariant()
    def the_snapshot_is_sound(self) -> None:
        snapshot = self.gate.snapshot()
        assert snapshot == self.gate.snapshot()
        assert snapshot["state"] == self.gate.state.name
        assert 0 <= snapshot["err_rate"] <= 1
        assert snapshot["window_len"] >= 0
        assert not self.heard.transitions, "looking changes nothing"


class SharedGate(RuleBasedStateMachine):
    """The gate in a connector's document, beside a gate of one process that knows of probes."""

    runner: asyncio.Runner
    database: Database
    name = 0

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(work)

    @initialize(chosen=circuit_settings)
    def begin(self, chosen: CircuitSettings) -> None:
        type(self).name += 1
        self.exchange_id = f"x{self.name}"
        self.chosen, self.heard = chosen, Heard()
        # Ahead of the server, so that its clock is the one that counts.
        self.clock = ManualClock(4_000_000_000_000)
        self.model = CircuitGate(
            "x",
            chosen,
            now_ms=self.clock.wall_ms,
            telemetry=self.heard,
            bin_sec=chosen.shared_bin_sec,
        )
        self.probe: str | None = None
        self.probe_until = 0
        self.late: list[str] = []
        """Probes that hang past their lease, their place given to others."""
        self.statements = 0
        limits = Limits(100_000, 1_000, circuit=chosen)
        self.run(ConnectorRegistry(self.database).ensure(self.exchange_id, limits))
        self._set_clock()

    @rule(seconds=st.sampled_from([0.25, 1, 4, 11, 70]))
    def time_passes(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self._set_clock()

    @precondition(lambda self: self.model.state is TRIPPED)
    @rule()
    def the_hold_is_over(self) -> None:
        self.time_passes(self.chosen.circuit_min_closed_sec)
        self.workers_ask(2)

    @precondition(lambda self: self.model.state is OPEN)
    @rule()
    def the_exchange_fails(self) -> None:
        for _ in range(self.chosen.circuit_min_events):
            self._outcome(ok=False)

    @rule(ok=st.booleans(), count=st.integers(1, 5))
    def outcomes_of_requests_that_are_no_probes(self, ok: bool, count: int) -> None:
        for _ in range(count):
            self._outcome(ok=ok)

    @rule(wanted=st.integers(1, 5))
    def workers_ask(self, wanted: int) -> None:
        granted, probe = self._ask(wanted)
        place_free = self.probe is None or self.probe_until <= self.clock.wall_ms()
        if not self.model.allow():
            assert granted == 0
        elif self.model.state is OPEN:
            assert (granted, probe) == (wanted, None)
        else:
            assert granted == (1 if place_free else 0), "one probe at a time"
            if granted:
                self.late += [self.probe] if self.probe else []
                self.probe, self.probe_until = probe, self.clock.wall_ms() + 10_000

    @precondition(lambda self: self.probe is not None)
    @rule(health=st.sampled_from(["good", "bad", "unknown"]))
    def the_probe_comes_back(self, health: Any) -> None:
        self._fold(health, self.probe)
        self.probe = None
        if health != "unknown":
            self.model.record(health == "good")

    @precondition(lambda self: self.late)
    @rule(health=st.sampled_from(["good", "bad"]))
    def a_probe_whose_place_was_given_away_comes_back(self, health: Any) -> None:
        before = self._circuit()
        self._fold(health, self.late.pop())
        after = self._circuit()
        if self.model.state is OPEN:
            self.model.record(health == "good")
        else:
            assert (before["state"], before["probe"]) == (after["state"], after["probe"])

    @invariant()
    def both_gates_agree(self) -> None:
        stored = self._circuit()
        assert stored.get("state", "OPEN") == self.model.state.name
        told = self.heard.transitions[-1:]
        transition = stored.get("transition") or {}
        assert [each.state_to.name for each in told] == [transition[key] for key in ("to",) if told]
        if self.model.state is OPEN:
            restored = CircuitGate.restored("x", stored, now_ms=self.clock.wall_ms)
            assert restored.snapshot() == self.model.snapshot()

    def _outcome(self, *, ok: bool) -> None:
        before, was_open = self._circuit(), self.model.state is OPEN
        self._fold("good" if ok else "bad", None)
        if was_open:
            self.model.record(ok)
        else:  # and the model would take it for a probe
            after = self._circuit()
            for name in ("state", "probe", "successes", "tripped_until", "transition"):
                assert before.get(name) == after.get(name), "only probes judge now"

    def _circuit(self) -> dict[str, Any]:
        found = self.run(self.database.connectors.find_one({"exchange_id": self.exchange_id}))
        circuit: dict[str, Any] = found["circuit"]
        assert len(circuit.get("bins") or ()) <= 31
        return circuit

    def _set_clock(self) -> None:
        change = {"$set": {"limiter.clock": self.clock.wall_ms()}}
        self.run(self.database.connectors.update_one({"exchange_id": self.exchange_id}, change))

    def _fold(self, health: Any, probe: str | None) -> None:
        outcomes = Outcomes()
        outcomes.add(health, probe)
        self.statements += 1
        self.run(
            self.database.connectors.update_one(
                {"exchange_id": self.exchange_id},
                fold_pipeline(outcomes, f"fold{self.statements}"),
            )
        )

    def _ask(self, wanted: int) -> tuple[int, str | None]:
        self.statements += 1
        nonce = f"ask{self.statements}"
        connectors = self.database.connectors
        found = self.run(connectors.find_one({"exchange_id": self.exchange_id}))
        connector = Connector.from_document(found)
        answer = self.run(
            connectors.find_one_and_update(
                grant_filter(connector),
                grant_pipeline(connector, Ask([Want()] * wanted, nonce)),
                projection=answer_projection(nonce, wanted),
                return_document=ReturnDocument.AFTER,
            )
        )
        granted = answer["limiter"]["granted"] if answer["limiter"].get("nonce") == nonce else 0
        probe = (answer["circuit"].get("probe") or {}).get("id")
        return granted, nonce if probe == nonce else None


def test_no_order_of_events_breaks_the_gate() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        OneGate,
        settings=settings(max_examples=examples(150), stateful_step_count=40, deadline=None),
    )


def test_the_gate_in_mongodb_is_the_same_gate(mongo_uri: str, database_name: str) -> None:
    with asyncio.Runner() as runner:
        database = Database(mongo_uri, database_name)
        SharedGate.runner, SharedGate.database = runner, database
        try:
            runner.run(database.read_server_clock())
            runner.run(migrations.up(database))
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                SharedGate,
                settings=settings(
                    max_examples=examples(30),
                    stateful_step_count=40,
                    deadline=None,
                    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes here
                ),
            )
        finally:
            runner.run(database.raw.client.drop_database(database_name))
            runner.run(database.close())
