"""AcquireToken: the right to send one request now, shared by every worker on every machine.

Inside a process, requests that want a token of the same exchange at the same time share one
command: a *lane* has at most one command under way, and whoever arrives meanwhile goes with the
next. That is where the speed is, and it is also fair: first come, first served, priority callers
ahead.

A token ages. The limiter promised the exchange that a request leaves within the window's margin
of its grant (see window.py); a token that took longer to reach its owner, because the process was
stalled or the database slow, is thrown away and bought again rather than spent late.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pymongo import ReturnDocument

from collector import metrics
from collector.clock import Clock, SystemClock
from collector.connectors.circuit_shared import SharedCircuit
from collector.connectors.connector import GLOBAL, Connector, Denial
from collector.connectors.grant import (
    Want,
    answer_projection,
    grant_filter,
    grant_pipeline,
)
from collector.errors import CostNeverFits, NotFound, RateLimited, RetryLater

if TYPE_CHECKING:
    from types import TracebackType

    from collector.mongo.client import Collection, Database, Document

MAX_BATCH = 256
MIN_BATCH = 4
BUDGET_REASONS = frozenset({"window", "minute_quota", "hour_quota"})
"""Denials that end when tokens come back, not when a person or an exchange changes its mind."""
STALE_TRIES = 5
LIMIT_READS = 5


@dataclass(frozen=True, slots=True)
class Token:
    """One request may leave now. `asked_at` is when its command was sent, on our own clock."""

    asked_at: float
    margin_ms: int
    together: int = 1
    """How many came with one command."""
    probe: str | None = None
    """The probe's id when the circuit gate let this one request through; see circuit_fold.py."""

    @property
    def good_until(self) -> float:
        """When it may be spent at the latest. The grant happened after `asked_at`, never before."""
        return self.asked_at + self.margin_ms / 1000


@dataclass(slots=True)
class _Waiter:
    want: Want
    patient_until: float
    answer: asyncio.Future[Token]


class Limiter:
    """Tokens for every exchange. Open it once a process; closing it ends its lanes."""

    def __init__(
        self, database: Database, *, clock: Clock | None = None, use_global: bool = False
    ) -> None:
        self._database = database
        self._clock = clock or SystemClock()
        self._use_global = use_global
        self._lanes: dict[str, Lane] = {}
        self._circuits: dict[str, SharedCircuit] = {}

    async def __aenter__(self) -> Limiter:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for lane in self._lanes.values():
            await lane.close()
        for circuit in self._circuits.values():
            await circuit.close()

    async def acquire(
        self, exchange_id: str, *, weight: int = 1, priority: bool = False, patience: float = 0.0
    ) -> Token:
        """Returns when one request may leave, at once or within `patience` seconds.

        Raises RateLimited with the reason and when to come back, CostNeverFits when no waiting
        can help, NotFound when there is no such connector.
        """
        want = Want(weight, priority)
        # The global token first: it only protects our own machines and may age in our hands,
        # while the exchange's must leave at once.
        if self._use_global:
            await self._lane(GLOBAL).acquire(Want(1, priority), patience)
        for _ in range(STALE_TRIES):
            token = await self._lane(exchange_id).acquire(want, patience)
            if self._clock.monotonic() <= token.good_until:
                return token
            self._lane(exchange_id).ask_for_fewer(than=token.together)
            self.waste(exchange_id, token)
        metrics.TOKENS_DENIED.labels(exchange_id, "stale").inc()
        raise RateLimited(exchange_id, token.margin_ms, "stale")

    def waste(self, exchange_id: str, token: Token) -> None:
        """Takes note of a token that aged before its request could leave."""
        metrics.TOKENS_STALE.labels(exchange_id).inc()
        self._lane(exchange_id).keep_probe(token)

    def exhausted_until(self, exchange_id: str) -> float:
        """Monotonic time before which the budget is spent, as far as this process knows."""
        lane = self._lanes.get(exchange_id)
        return lane.exhausted_until if lane else 0.0

    def counted(self, exchange_id: str, unit: str, period_ms: int) -> int | None:
        """What we had counted in that window at our last answer; None for no such window."""
        lane = self._lanes.get(exchange_id)
        return lane.counted.get((unit, period_ms)) if lane else None

    def circuit(self, exchange_id: str) -> SharedCircuit:
        """Where the outcomes of the exchange's requests go."""
        circuit = self._circuits.get(exchange_id)
        if circuit is None:
            circuit = self._circuits[exchange_id] = SharedCircuit(
                self._database.connectors, exchange_id, self._database.server_clock
            )
        return circuit

    def _lane(self, exchange_id: str) -> Lane:
        lane = self._lanes.get(exchange_id)
        if lane is None:
            collection = (
                self._database.system if exchange_id == GLOBAL else self._database.connectors
            )
            circuit = self.circuit(exchange_id)
            lane = self._lanes[exchange_id] = Lane(collection, exchange_id, self._clock, circuit)
        return lane


class Lane:
    """The queue of one exchange's token wants in this process."""

    def __init__(
        self, collection: Collection, exchange_id: str, clock: Clock, circuit: SharedCircuit
    ) -> None:
        self.exchange_id = exchange_id
        self.exhausted_until = 0.0
        self.counted: dict[tuple[str, int], int] = {}
        self._batch = MAX_BATCH
        self._retry_at = 0.0
        self._collection = collection
        self._clock = clock
        self._circuit = circuit
        self._unspent_probe: str | None = None
        self._waiting: deque[_Waiter] = deque()
        self._arrived = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._denied_since_grant = 0
        self._connector: Connector | None = None

    async def acquire(self, want: Want, patience: float) -> Token:
        waiter = _Waiter(
            want,
            self._clock.monotonic() + patience,
            asyncio.get_running_loop().create_future(),
        )
        self._waiting.append(waiter)
        # Somebody who cannot wait out the pause ends it; the others share its end.
        if want.priority or waiter.patient_until < self._retry_at:
            self._arrived.set()
        if self._serving is None or self._serving.done():
            self._serving = asyncio.create_task(self._serve(), name=f"tokens:{self.exchange_id}")
        return await waiter.answer

    def ask_for_fewer(self, than: int) -> None:
        """More came together than this process could spend in time: half as many from now on."""
        self._batch = max(MIN_BATCH, min(self._batch, than // 2))

    def keep_probe(self, token: Token) -> None:
        """A probe that did not leave is still ours to send, with the next token."""
        self._unspent_probe = token.probe or self._unspent_probe

    async def close(self) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for waiter in self._waiting:
            waiter.answer.cancel()

    async def _serve(self) -> None:
        while self._waiting:
            batch = self._next_batch()
            if not batch:
                return
            try:
                await self._ask(batch)
            except Exception as error:  # noqa: BLE001 - whatever it is, every waiter must hear it
                for waiter in batch:
                    _fail(waiter, error)
                continue
            if self._waiting:
                await self._pause()

    def _next_batch(self) -> list[_Waiter]:
        """Takes those who go with the next command: priority first, then as they came."""
        alive = [waiter for waiter in self._waiting if not waiter.answer.done()]
        alive.sort(key=lambda waiter: not waiter.want.priority)
        self._waiting = deque(alive[self._batch :])
        return alive[: self._batch]

    async def _ask(self, batch: list[_Waiter]) -> None:
        nonce = uuid.uuid4().hex
        self._arrived.clear()
        connector, answer, asked_at = await self._answer(batch, nonce)
        windows = connector.all_windows
        self.counted = {
            (window.unit, window.period_ms): count
            for window, count in zip(windows, answer.get("counted") or (), strict=False)
        }
        granted = _granted_count(answer, nonce)
        if granted:
            self._batch = min(MAX_BATCH, self._batch + 1)
            self._denied_since_grant = 0
            probe = self._circuit.heard(answer.get("circuit") or {}, nonce)
            self._unspent_probe = probe if batch[0].answer.done() else None
            token = Token(asked_at, connector.margin_ms, granted, probe)
            for waiter in batch[:granted]:
                if not waiter.answer.done():
                    waiter.answer.set_result(token)
        if granted < len(batch):
            state = Connector.from_document({**connector.document, **answer})
            self._turn_away(batch[granted:], state, answer)
        else:
            self._retry_at = self.exhausted_until = 0.0

    async def _answer(self, batch: list[_Waiter], nonce: str) -> tuple[Connector, Document, float]:
        """One command for all of them, repeated only when somebody changed the limits."""
        wants = [waiter.want for waiter in batch]
        for _ in range(LIMIT_READS):
            connector = self._connector or await self._read_limits()
            asked_at = self._clock.monotonic()
            answer = await self._collection.find_one_and_update(
                grant_filter(connector),
                grant_pipeline(
                    connector, wants, nonce, self._denied_since_grant, self._unspent_probe
                ),
                projection=answer_projection(nonce, len(batch)),
                return_document=ReturnDocument.AFTER,
            )
            if answer is not None:
                return connector, answer, asked_at
            self._connector = None
        raise RetryLater(f"{self.exchange_id}: its limits keep changing")

    async def _read_limits(self) -> Connector:
        document = await self._collection.find_one(
            {"exchange_id": self.exchange_id}, projection={"limiter": 0}
        )
        if document is None:
            raise NotFound(f"there is no connector {self.exchange_id!r}")
        self._connector = Connector.from_document(document)
        return self._connector

    def _turn_away(self, batch: list[_Waiter], connector: Connector, answer: Document) -> None:
        """Tells those without a token why; the patient ones stay for the next command."""
        now_ms = max(
            round(answer["now"].timestamp() * 1000), answer.get("limiter", {}).get("clock", 0)
        )
        monotonic = self._clock.monotonic()
        patient = []
        for waiter in batch:
            window = connector.never_fits(waiter.want.weight)
            if window is not None:
                _fail(waiter, _cost_never_fits(self.exchange_id, waiter.want, window))
                continue
            denial = connector.denial(waiter.want.weight, waiter.want.priority, now_ms)
            wait_ms = max(1, denial.retry_at_ms - now_ms)
            self._retry_at = monotonic + wait_ms / 1000
            if denial.reason in BUDGET_REASONS:
                self.exhausted_until = self._retry_at
            if self._retry_at <= waiter.patient_until:
                patient.append(waiter)
            else:
                self._deny(waiter, denial, wait_ms)
        self._waiting.extendleft(reversed(patient))

    def _deny(self, waiter: _Waiter, denial: Denial, wait_ms: int) -> None:
        self._denied_since_grant += 1
        metrics.TOKENS_DENIED.labels(self.exchange_id, denial.reason).inc()
        if denial.reason in BUDGET_REASONS:
            metrics.RATE_LIMIT_SATURATED.labels(self.exchange_id).inc()
        _fail(
            waiter,
            RateLimited(self.exchange_id, wait_ms, denial.reason, retry_at_ms=denial.retry_at_ms),
        )

    async def _pause(self) -> None:
        """Until tokens may be back, or somebody who cannot wait arrives."""
        # A little spread keeps many processes from asking in the same millisecond.
        seconds = self._retry_at - self._clock.monotonic() + random.random() * 0.005
        if seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return


def _granted_count(answer: dict[str, Any], nonce: str) -> int:
    limiter = answer.get("limiter") or {}
    return int(limiter["granted"]) if limiter.get("nonce") == nonce else 0


def _fail(waiter: _Waiter, error: Exception) -> None:
    if not waiter.answer.done():
        waiter.answer.set_exception(error)


def _cost_never_fits(exchange_id: str, want: Want, window: Any) -> CostNeverFits:
    return CostNeverFits(
        f"{exchange_id}: a request of weight {want.weight} can never pass a window of "
        f"{window.limit} {window.unit} per {window.period_ms} ms"
    )
