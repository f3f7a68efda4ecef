"""The circuit gate: no requests to an exchange that fails too often.

OPEN lets requests through. When enough of the last `circuit_window_sec` seconds' outcomes were
errors the gate is TRIPPED, for `circuit_min_closed_sec` seconds. Then it is HALF_OPEN:
`circuit_half_open_probe` successes make it OPEN again, one error trips it again. Opening clears the
window, or the earlier errors would trip it at once.

This is one gate in one process, complete and with its time injected. The gate that a fleet shares
lives in the connector's document and decides by the same rules in MongoDB (fold.py); this class
reads that document, and a property test compares the two.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypedDict

from collector.connectors.circuit.state import CircuitState, CircuitTransition
from collector.connectors.circuit.telemetry import CircuitTelemetry, Silent, Telemetry
from collector.connectors.circuit.window import Bin, EventWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OPEN, TRIPPED, HALF_OPEN = CircuitState

SHARED_BINS = 30
"""The shared window's bins: few, because every grant reads and writes the document they are in."""


@dataclass(frozen=True, slots=True)
class CircuitSettings:
    """When a gate trips, how it opens again, and how much it reports."""

    circuit_window_sec: int = 300
    circuit_max_err_rate_ratio: float = 0.5
    circuit_min_closed_sec: int = 60
    circuit_half_open_probe: int = 3
    circuit_min_events: int = 20
    """Outcomes a window needs before it may trip: two errors on a quiet night prove nothing."""
    circuit_probe_lease_sec: int = 30
    """How long a probe of the shared gate may hold its place; longer than a request's time-out."""
    thread_safe: bool = False
    """A lock around the public methods of a process's gate."""
    events_per_sec_hint: int = 1
    """Expected outcomes per second, from which the size of a process's window is computed."""
    events_maxlen: int | None = None
    """That size itself, when it is given; never more than MOST_ENTRIES."""
    anti_flood_enabled: bool = True
    """Outcomes of a second share one entry, and logs and gauges have a budget a second."""
    max_events_per_sec: int = 50
    """Updates of the gauges of a process's gate. No effect on the shared gate: its gauges are read
    from the connector's document when they are scraped."""
    max_log_lines_per_sec: int = 10

    def __post_init__(self) -> None:
        if not 0 < self.circuit_max_err_rate_ratio <= 1:
            raise ValueError("circuit_max_err_rate_ratio must be above 0 and at most 1")
        if self.events_per_sec_hint < 0:
            raise ValueError("events_per_sec_hint must be at least 0")
        for field in fields(self):
            value = getattr(self, field.name)
            counts = type(value) is int and field.name != "events_per_sec_hint"
            if counts and value < 1:
                raise ValueError(f"{field.name} must be at least 1")

    @classmethod
    def from_document(cls, circuit: Mapping[str, Any]) -> CircuitSettings:
        """From a connector's `circuit`; missing fields have their defaults."""
        return cls(**(circuit.get("settings") or {}))

    @property
    def room(self) -> int:
        """Entries that the window of a process's gate has room for."""
        hinted = self.circuit_window_sec * max(1, self.events_per_sec_hint)
        return hinted if self.events_maxlen is None else self.events_maxlen

    @property
    def shared_bin_sec(self) -> int:
        return -(-self.circuit_window_sec // SHARED_BINS)

    def trips(self, errors: int, events: int) -> bool:
        """Whether these counts are enough to trip an open gate."""
        return (
            events >= self.circuit_min_events and errors >= self.circuit_max_err_rate_ratio * events
        )


DEFAULTS = CircuitSettings()


class GateSnapshot(TypedDict):
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
        telemetry: Telemetry | None = None,
        bin_sec: int = 1,
    ) -> None:
        """`telemetry` replaces log and metrics."""
        self.settings = settings
        self._now_ms = now_ms
        self._latest_ms = 0
        self._lock: AbstractContextManager[Any] = (
            threading.Lock() if settings.thread_safe else nullcontext()
        )
        self._window = EventWindow(
            settings.circuit_window_sec,
            maxlen=settings.room,
            bin_sec=bin_sec,
            coalesce=settings.anti_flood_enabled,
        )
        self._telemetry = telemetry or CircuitTelemetry(exchange, settings)
        self._state = OPEN
        self._tripped_until_ms = 0
        self._successes = 0
        self._last_transition_ts = 0

    @classmethod
    def restored(
        cls, exchange: str, circuit: Mapping[str, Any], *, now_ms: Callable[[], int]
    ) -> CircuitGate:
        """The shared gate from a connector's `circuit`, on the server's clock; no telemetry."""
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
        """Whether a request may leave now. The first call after the hold makes it HALF_OPEN."""
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

    def snapshot(self) -> GateSnapshot:
        """Changes nothing."""
        with self._lock:
            self._window.forget(self._clock() // 1000)
            return GateSnapshot(
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
        transition = CircuitTransition(
            self._state, state, self._window.err_rate, self.settings.circuit_window_sec, now_sec
        )
        self._state = state
        self._last_transition_ts = now_sec
        self._telemetry.changed(transition)
