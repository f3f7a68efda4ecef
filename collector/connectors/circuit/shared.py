"""One exchange's shared circuit gate as one process sees it.

Good outcomes are gathered and written together, a few statements per second however many requests
there are. A bad one, and the verdict of a probe, may move the gate: it is written at once with
whatever was gathered, before the request's caller continues. Outcomes that come while a statement
is under way share the next one. MongoDB decides whether the gate moves; the process whose statement
moved it reports the transition.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument

from collector.connectors.circuit.fold import Outcomes, fold_pipeline
from collector.connectors.circuit.gate import CircuitSettings
from collector.connectors.circuit.state import CircuitState, CircuitTransition
from collector.connectors.circuit.telemetry import CircuitTelemetry
from collector.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collector.exchanges.port import Health
    from collector.mongo.client import Collection

GATHER_SECONDS = 0.25


class SharedCircuit:
    """Reports the outcomes of requests to the connector. Close it: some may not be written yet."""

    def __init__(self, connectors: Collection, exchange_id: str) -> None:
        self._connectors = connectors
        self._exchange_id = exchange_id
        self._settings = CircuitSettings()
        self._telemetry = CircuitTelemetry(exchange_id, self._settings)
        self._pending = Outcomes()
        self._writing = asyncio.Lock()
        self._later: asyncio.Task[None] | None = None
        self._known: Mapping[str, Any] = {}

    async def note(self, health: Health, probe: str | None = None, reason: str = "") -> None:
        """Counts the outcome of a request; `probe` when it was one. Never fails.

        `reason` is the error of a bad one in words.
        """
        if health == "unknown" and probe is None:
            return
        self._pending.add(health, probe, reason)
        if probe is not None or health == "bad":
            with suppress(DatabaseUnavailable):
                await self._write()
        if self._pending and (self._later is None or self._later.done()):
            self._later = asyncio.create_task(
                self._write_later(), name=f"circuit:{self._exchange_id}"
            )

    def note_grant(self, circuit: Mapping[str, Any], nonce: str) -> str | None:
        """Reads the gate from a grant's answer; returns the id of a probe."""
        transition = circuit.get("transition") or {}
        if transition != self._known.get("transition", {}):
            self._adopt(circuit, nonce)
        probe = circuit.get("probe") or {}
        return nonce if probe.get("id") == nonce else None

    async def close(self) -> None:
        if self._later is not None:
            self._later.cancel()
            await asyncio.gather(self._later, return_exceptions=True)
        with suppress(DatabaseUnavailable):
            await self._write()

    async def _write_later(self) -> None:
        while self._pending:
            await asyncio.sleep(GATHER_SECONDS)
            with suppress(DatabaseUnavailable):
                await self._write()

    async def _write(self) -> None:
        """One statement for all that is pending; later outcomes go with the next."""
        async with self._writing:
            outcomes, self._pending = self._pending, Outcomes()
            if not outcomes:
                return
            nonce, written = uuid.uuid4().hex, False
            try:
                answer = await self._connectors.find_one_and_update(
                    {"exchange_id": self._exchange_id},
                    fold_pipeline(outcomes, nonce),
                    projection={"circuit": 1},
                    return_document=ReturnDocument.AFTER,
                )
                written = True
            finally:
                if not written:
                    self._pending = outcomes.with_later(self._pending)
        if answer is not None:
            self._adopt(answer["circuit"], nonce)

    def _adopt(self, circuit: Mapping[str, Any], nonce: str) -> None:
        """Takes over the stored gate, and reports a transition that our statement caused."""
        self._known = circuit
        settings = CircuitSettings.from_document(circuit)
        if settings != self._settings:
            self._settings = settings
            self._telemetry = CircuitTelemetry(self._exchange_id, settings)
        transition = circuit.get("transition") or {}
        if transition.get("by") == nonce:
            self._telemetry.changed(
                CircuitTransition(
                    CircuitState[transition["from"]],
                    CircuitState[transition["to"]],
                    transition["err_rate"],
                    settings.circuit_window_sec,
                    transition["at"] // 1000,
                )
            )
