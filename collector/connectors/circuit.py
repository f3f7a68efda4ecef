"""The circuit gate: stands in the way while an exchange fails too often (seed 002).

OPEN lets requests through. When enough of the last `circuit_window_sec` seconds' outcomes were
errors the gate is TRIPPED, for `circuit_min_closed_sec` seconds. Then it is HALF_OPEN: so many
successes as `circuit_half_open_probe` says make it OPEN again, one error trips it anew. Opening
forgets the window, or the errors of before would trip it at once.

This is one gate in one process, complete and with its time injected. The gate that a fleet shares
lives in the connector's document and decides by the same rules in MongoDB (circuit_fold.py); this
class reads that document, and a property test holds the two equal.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from collector.connectors.circuit_state import CircuitState, Transition
from collector.connectors.circuit_telemetry import (
    MAX_EVENTS_PER_SEC,
    MAX_LOG_LINES_PER_SEC,
    CircuitTelemetry,
    Silent,
    Telemetry,
)
from collector.connectors.circuit_window import Bin, EventWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OPEN, TRIPPED, HALF_OPEN = CircuitState

SHARED_BINS = 30
"""The shared window's bins: few, because every grant reads and writes the document they are in."""


@dataclass(frozen=True, slots=True)
class CircuitSettings:
    """When a gate trips and how it opens again. The first four are the seed's."""

    circuit_window_sec: int = 300
    circuit_max_err_rate_ratio: float = 0.5
    circuit_min_closed_sec: int = 60
    circuit_half_open_probe: int = 3
    circuit_min_events: int = 20
    """Outcomes a window needs before it may trip: two errors on a quiet night prove nothing."""
    circuit_probe_lease_sec: int = 30
    """How long a probe of the shared gate may keep the place; longer than a request's time-out."""

    def __post_init__(self) -> None:
        if not 0 < self.circuit_max_err_rate_ratio <= 1:
            raise ValueError("circuit_max_err_rate_ratio must be above 0 and at most 1")
        for field in fields(self):
            if field.name != "circuit_max_err_rate_ratio" and getattr(self, field.name) < 1:
                raise ValueError(f"{field.name} must be at least 1")

    @classmethod
    def from_document(cls, circuit: Mapping[str, Any]) -> CircuitSettings:
        """As a connector's `circuit` has them; what it lacks is the default."""
        return cls(**(circuit.get("settings") or {}))

    @property
    def shared_bin_sec(self) -> int:
        return -(-self.circuit_window_sec // SHARED_BINS)

    def trips(self, errors: int, events: int) -> bool:
        """Whether a window that counts so many is more than an open gate bears."""
        return (
            events >= self.circuit_min_events and errors >= self.circuit_max_err_rate_ratio * events
        )


DEFAULTS = CircuitSettings()


class Snapshot(TypedDict):
    """The gate at one moment. `window_len` counts outcomes; the time is in epoch seconds."""

    state: str
    err_rate: float
    window_len: int
    last_transition_ts: int


class CircuitGate:
    """The gate of one exchange in one process."""

    def __init__(
        self,
        exchange: str,
        settings: CircuitSettings = DEFAULTS,
        *,
        now_ms: Callable[[], int],
        thread_safe: bool = False,
        events_per_sec_hint: int = 1,
        events_maxlen: int | None = None,
        anti_flood_enabled: bool = True,
        max_events_per_sec: int = MAX_EVENTS_PER_SEC,
        max_log_lines_per_sec: int = MAX_LOG_LINES_PER_SEC,
        telemetry: Telemetry | None = None,
        bin_sec: int = 1,
    ) -> None:
        """`thread_safe` puts a lock around the public methods.

        The window has room for `events_maxlen` entries, else for `events_per_sec_hint` a second;
        never for more than MOST_ENTRIES. `telemetry` takes the place of log and metrics.
        """
        self.settings = settings
        self._now_ms = now_ms
        self._latest_ms = 0
        self._lock: AbstractContextManager[Any] = threading.Lock() if thread_safe else nullcontext()
        room = settings.circuit_window_sec * max(1, events_per_sec_hint)
        self._window = EventWindow(
            settings.circuit_window_sec,
            maxlen=room if events_maxlen is None else events_maxlen,
            bin_sec=bin_sec,
            coalesce=anti_flood_enabled,
        )
        self._telemetry = telemetry or CircuitTelemetry(
            exchange,
            anti_flood_enabled=anti_flood_enabled,
            max_events_per_sec=max_events_per_sec,
            max_log_lines_per_sec=max_log_lines_per_sec,
        )
        self._state = OPEN
        self._tripped_until_ms = 0
        self._successes = 0
        self._last_transition_ts = 0

    @classmethod
    def restored(
        cls, exchange: str, circuit: Mapping[str, Any], *, now_ms: Callable[[], int]
    ) -> CircuitGate:
        """The shared gate as a connector's `circuit` tells it, on the server's clock; silent."""
        settings = CircuitSettings.from_document(circuit)
        bin_sec = settings.shared_bin_sec
        gate = cls(exchange, settings, now_ms=now_ms, telemetry=Silent(), bin_sec=bin_sec)
        bins = (Bin(each["t"], each["ok"], each["err"]) for each in circuit.get("bins") or ())
        gate._window.replace(sorted(bins))
        gate._state = CircuitState[circuit.get("state") or OPEN.name]
        gate._tripped_until_ms = circuit.get("tripped_until") or 0
        gate._successes = circuit.get("successes") or 0
        gate._last_transition_ts = (circuit.get("transition") or {}).get("at", 0) // 1000
        return gate

    @property
    def state(self) -> CircuitState:
        with self._lock:
            return self._state

    def allow(self) -> bool:
        """Whether a request may leave now. The first to ask after the hold makes it HALF_OPEN."""
        with self._lock:
            self._tick()
            return self._state is not TRIPPED

    def record(self, ok: bool) -> None:
        """Counts the outcome of a request, and moves the gate if it has to."""
        with self._lock:
            now_sec = self._tick()
            self._window.add(now_sec, ok)
            if self._state is HALF_OPEN:
                self._judge_probe(ok, now_sec)
            elif self._state is OPEN and self._too_many_errors():
                self._trip(now_sec)
            self._telemetry.observed(self._state, self._window.err_rate, now_sec)

    def snapshot(self) -> Snapshot:
        """Changes nothing."""
        with self._lock:
            self._window.forget(self._clock() // 1000)
            return Snapshot(
                state=self._state.name,
                err_rate=self._window.err_rate,
                window_len=self._window.events,
                last_transition_ts=self._last_transition_ts,
            )

    def _clock(self) -> int:
        """Never runs backwards, whatever the clock does."""
        self._latest_ms = max(self._latest_ms, self._now_ms())
        return self._latest_ms

    def _tick(self) -> int:
        now_ms = self._clock()
        self._window.forget(now_ms // 1000)
        if self._state is TRIPPED and now_ms >= self._tripped_until_ms:
            self._successes = 0
            self._move(HALF_OPEN, now_ms // 1000)
        return now_ms // 1000

    def _too_many_errors(self) -> bool:
        return self.settings.trips(self._window.err_count, self._window.events)

    def _judge_probe(self, ok: bool, now_sec: int) -> None:
        if not ok:
            self._trip(now_sec)
            return
        self._successes += 1
        if self._successes >= self.settings.circuit_half_open_probe:
            self._move(OPEN, now_sec)
            self._window.replace(())

    def _trip(self, now_sec: int) -> None:
        self._tripped_until_ms = self._latest_ms + self.settings.circuit_min_closed_sec * 1000
        self._move(TRIPPED, now_sec)

    def _move(self, state: CircuitState, now_sec: int) -> None:
        transition = Transition(
            self._state, state, self._window.err_rate, self.settings.circuit_window_sec, now_sec
        )
        self._state = state
        self._last_transition_ts = now_sec
        self._telemetry.changed(transition)
