"""AcquireToken: the right to send one request now, shared by every worker on every machine.

Inside a process, requests that want a token of the same exchange at the same time share one command
(lane.py).

A token expires. One that took long to reach its caller, because the process was stalled or the
database slow, is discarded and bought again rather than spent late: its wait would count as
lateness, and be charged.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from collector import metrics
from collector.clock import Clock, SystemClock
from collector.connectors.circuit.shared import SharedCircuit
from collector.connectors.connector import GLOBAL
from collector.connectors.grant_window import Want
from collector.connectors.lane import Lane
from collector.errors import RateLimited

if TYPE_CHECKING:
    from types import TracebackType

    from collector.connectors.token import Token
    from collector.mongo.client import Database

STALE_TRIES = 5
SPARE_SECONDS = 1.0
"""How long an unused global token is kept for the next caller."""


class Limiter:
    """Tokens for every exchange. Open it once a process; closing it ends its lanes."""

    def __init__(
        self, database: Database, *, clock: Clock | None = None, use_global: bool = False
    ) -> None:
        self._database = database
        self.clock: Clock = clock or SystemClock()
        self._use_global = use_global
        self._lanes: dict[str, Lane] = {}
        self._circuits: dict[str, SharedCircuit] = {}
        self._spare: deque[Token] = deque()

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
        self,
        exchange_id: str,
        *,
        weight: int = 1,
        priority: bool = False,
        urgency: int = 0,
        patience: float = 0.0,
        key: str | None = None,
    ) -> Token:
        """Returns when one request may leave, at once or within `patience` seconds.

        `priority` may use the reserve of a window; among the others the lower `urgency` goes first
        (collector/priority.py). `key` is what the connector spaces requests by, where it does.

        Raises RateLimited with the reason and when to come back, CostNeverFits when no waiting
        can help, NotFound when there is no such connector.
        """
        want = Want(weight, priority, key)
        if not self._use_global:
            return await self._of_exchange(exchange_id, want, urgency, patience)
        # The global token first: it only protects our own machines and may wait, while the
        # exchange's must be spent at once.
        general = await self._of_all_exchanges(priority, urgency, patience)
        try:
            return await self._of_exchange(exchange_id, want, urgency, patience)
        except BaseException:
            self._spare.append(general)
            raise

    async def _of_exchange(
        self, exchange_id: str, want: Want, urgency: int, patience: float
    ) -> Token:
        lane = self._lane(exchange_id)
        for _ in range(STALE_TRIES):
            token = await lane.acquire(want, patience, urgency)
            if self.clock.monotonic() <= token.good_until:
                return token
            lane.ask_for_fewer(than=token.together)
            self.waste(exchange_id, token)
        metrics.TOKENS_DENIED.labels(exchange_id, "stale").inc()
        raise RateLimited(exchange_id, token.life_ms, "stale")

    async def _of_all_exchanges(self, priority: bool, urgency: int, patience: float) -> Token:
        while self._spare:
            spare = self._spare.popleft()
            if self.clock.monotonic() - spare.asked_at < SPARE_SECONDS:
                return spare
        return await self._lane(GLOBAL).acquire(Want(1, priority), patience, urgency)

    def sent(self, exchange_id: str, token: Token, weight: int) -> None:
        """The request leaves; every call is followed by `answered` or `waste`."""
        self._lane(exchange_id).way.sent(token, weight)

    def answered(
        self, exchange_id: str, token: Token, at: float | None, *, learn: bool = True
    ) -> None:
        """Its answer, or a failure, came `at` this moment; None: it may still arrive.

        `learn` says that it was an answer, from which the exchange's latency is learned.
        """
        self._lane(exchange_id).way.answered(token, at, learn=learn)

    def waste(self, exchange_id: str, token: Token) -> None:
        """Records a token that expired before its request could leave."""
        metrics.TOKENS_STALE.labels(exchange_id).inc()
        self._lane(exchange_id).wasted(token)

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
            circuit = SharedCircuit(self._database.connectors, exchange_id)
            self._circuits[exchange_id] = circuit
        return circuit

    def _lane(self, exchange_id: str) -> Lane:
        lane = self._lanes.get(exchange_id)
        if lane is None:
            database = self._database
            collection = database.system if exchange_id == GLOBAL else database.connectors
            lane = self._lanes[exchange_id] = Lane(
                collection,
                exchange_id,
                self.clock,
                database.server_clock,
                self.circuit(exchange_id),
            )
        return lane
